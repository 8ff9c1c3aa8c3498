-- What the database's schema consists of: the table, a tab and a description, a row each. Triggers and views belong to
-- no table. The tables that goose, SQLite and FTS5 make are compared by name alone: other versions may word them differently.
SELECT CASE WHEN type IN ('trigger', 'view') THEN '' ELSE tbl_name END || char(9) || type || ' ' || name ||
    CASE WHEN tbl_name IN ('grapnel_migrations', 'sqlite_sequence') OR tbl_name LIKE 'text\_words\_%' ESCAPE '\' OR tbl_name LIKE 'record\_terms\_%' ESCAPE '\' THEN ''
    ELSE coalesce(' ' || replace(sql, char(10), ' '), '') END
FROM sqlite_master WHERE name NOT IN ('sqlite_stat1', 'sqlite_stat4') ORDER BY 1
