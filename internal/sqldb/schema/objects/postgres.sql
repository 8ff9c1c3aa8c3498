-- What the tables in the search path consist of: the table, a tab and a description, a row each.
WITH tables AS (
    SELECT c.oid, c.relname, c.relkind, c.relrowsecurity, n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND pg_table_is_visible(c.oid) AND n.nspname NOT IN ('pg_catalog', 'information_schema')
        AND c.relname <> 'grapnel_migrations'
)
SELECT relname || E'\t' || what FROM (
    SELECT relname, format('kind %s, row security %s', relkind, relrowsecurity) AS what FROM tables
    UNION ALL
    SELECT relname, format('column %s %s, not null %s, identity %s, generated %s, collation %s, default %s', attname, format_type(atttypid, atttypmod),
        attnotnull, nullif(attidentity, ''), nullif(attgenerated, ''), (SELECT collname FROM pg_collation l WHERE l.oid = attcollation), pg_get_expr(adbin, adrelid))
        FROM tables t JOIN pg_attribute a ON attrelid = t.oid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
        WHERE attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT relname, format('index %s, valid %s', replace(pg_get_indexdef(indexrelid), ' ' || nspname || '.', ' '), indisvalid AND indisready AND indislive)
        FROM tables t JOIN pg_index ON indrelid = t.oid
    UNION ALL
    SELECT relname, format('constraint %s %s, valid %s', conname, replace(pg_get_constraintdef(c.oid), ' ' || nspname || '.', ' '), convalidated)
        FROM tables t JOIN pg_constraint c ON conrelid = t.oid WHERE contype IN ('c', 'f', 'p', 'u', 'x')
    UNION ALL
    SELECT relname, 'trigger ' || tgname FROM tables t JOIN pg_trigger ON tgrelid = t.oid WHERE NOT tgisinternal
    UNION ALL
    SELECT relname, 'disabled trigger ' || tgname FROM tables t JOIN pg_trigger ON tgrelid = t.oid WHERE tgisinternal AND tgenabled <> 'O'
    UNION ALL
    SELECT relname, 'rule ' || rulename FROM tables t JOIN pg_rewrite ON ev_class = t.oid WHERE rulename <> '_RETURN'
    UNION ALL
    SELECT relname, 'policy ' || polname FROM tables t JOIN pg_policy ON polrelid = t.oid
    UNION ALL
    SELECT relname, 'inherits ' || inhparent::regclass FROM tables t JOIN pg_inherits ON inhrelid = t.oid
    UNION ALL
    SELECT relname, 'is inherited by ' || inhrelid::regclass FROM tables t JOIN pg_inherits ON inhparent = t.oid
) objects ORDER BY 1
