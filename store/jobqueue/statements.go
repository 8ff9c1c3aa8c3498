package jobqueue

import (
	"strings"

	"github.com/grapnelhq/grapnel/internal/sqldb"
)

const (
	// queueName is the queue within River's tables, and jobKind the kind of all our jobs.
	queueName = "grapnel"
	jobKind   = "grapnel"
)

// statements are our SQL for one kind of database, about the jobs of our queue only.
type statements struct {
	count  string // the waiting jobs, and those of the plugin $1 among them
	states string // the running, due, scheduled and dead jobs, and for how many seconds the oldest has been due
	// list and listDead select up to $3 jobs after the id $1, of the plugin $2 unless it is
	// empty; show selects the job $1.
	list, listDead, show string
	// busy asks whether a job that the process $1 has added or taken is running or due; due, whether any is.
	busy, due string
	// done, discard, retry and requeue end the attempt $2 of the process $3 at the job $1, if
	// it is current. Discard adds the failure $4; retry and requeue offer the job again after
	// $4 seconds, and add the failure or the metadata $5.
	done, discard, retry, requeue string
	begin                         string // adds the metadata $4
	renew                         string // the leases of the process $1 on the jobs $2, a JSON list; returns those it still holds
	// expired asks for the time, and whether leases expired $1 seconds ago. discardLost, then
	// rescue end such attempts with the failure $2 and return the ids. discardLost takes the
	// last attempts, and those that must not be repeated, with the failure $3.
	expired, discardLost, rescue string
	retryDead, removeDead        string // return which of the jobs $1, a JSON list, were dead
}

// River never gives some of these states to our jobs; its tools may.
const (
	waitingStates = "('available', 'scheduled', 'retryable', 'pending')"
	deadStates    = "('discarded', 'cancelled')"
	// All but completed, of which there may be very many.
	keptStates = "('available', 'scheduled', 'retryable', 'pending', 'running', 'discarded', 'cancelled')"
	openStates = "('available', 'scheduled', 'retryable', 'pending', 'running')"
	// The metadata of a job that starts again.
	fresh = `{"begun":0,"requeued":0,"by":""}`
)

// wordsFor replaces {words} in statements.
func wordsFor(kind sqldb.Kind, schema string) *strings.Replacer {
	if kind == sqldb.SQLite {
		return strings.NewReplacer(
			"{job}", "river_job",
			"{ours}", "queue = '"+queueName+"'",
			"{now}", "datetime('now', 'subsec')",
			"{ago}", "datetime('now', 'subsec', '-' || $1 || ' seconds')",
			"{after}", "datetime('now', 'subsec', '+' || $4 || ' seconds')",
			"{holder}", "json_extract(attempted_by, '$[#-1]')",
			"{plugin}", pluginSQLite,
			"{by}", "json_extract(metadata, '$.by')",
			"{failure4}", "json_insert(coalesce(errors, json('[]')), '$[#]', json($4))",
			"{failure5}", "json_insert(coalesce(errors, json('[]')), '$[#]', json($5))",
			"{lost(", `json_insert(coalesce(errors, json('[]')), '$[#]', json_object('at',
				strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'attempt', attempt, 'trace', '', 'code', 'interrupted', 'error', `,
			")lost}", "))",
			"{merged}", "json_patch(metadata, $5)",
			"{begun}", "json_extract(metadata, '$.begun')",
			"{begins}", "json_patch(metadata, $4)",
			"{fresh}", "json_patch(metadata, '"+fresh+"')",
			"{list}", "(SELECT value FROM json_each($2))",
			"{ids}", "(SELECT value FROM json_each($1))",
			"{args}", "CAST(args AS TEXT)",
			"{metadata}", "CAST(metadata AS TEXT)",
			"{last}", "json_extract(errors, '$[#-1]')",
			"{epoch(", "unixepoch(",
			")}", ", 'subsec')",
		)
	}
	return strings.NewReplacer(
		"{job}", schema+".river_job",
		"{ours}", "queue = '"+queueName+"'",
		"{now}", "now()",
		"{ago}", "now() - $1::float8 * interval '1 second'",
		"{after}", "now() + $4::float8 * interval '1 second'",
		"{holder}", "attempted_by[array_upper(attempted_by, 1)]",
		"{plugin}", "metadata->>'plugin'",
		"{by}", "metadata->>'by'",
		"{failure4}", "array_append(errors, $4::jsonb)",
		"{failure5}", "array_append(errors, $5::jsonb)",
		"{lost(", `array_append(errors, jsonb_build_object('at', to_json(now()), 'attempt', attempt, 'trace', '', 'code', 'interrupted', 'error', `,
		")lost}", "))",
		"{merged}", "metadata || $5::jsonb",
		"{begun}", "(metadata->>'begun')::bigint",
		"{begins}", "metadata || $4::jsonb",
		"{fresh}", "metadata || '"+fresh+"'::jsonb",
		"{list}", "(SELECT value::bigint FROM json_array_elements_text($2::json))",
		"{ids}", "(SELECT value::bigint FROM json_array_elements_text($1::json))",
		"{args}", "args::text",
		"{metadata}", "metadata::text",
		"{last}", "errors[array_upper(errors, 1)]::text",
		"{epoch(", "extract(epoch from ",
		")}", ")::float8",
	)
}

func statementsFor(kind sqldb.Kind, schema string) *statements {
	const (
		held    = " WHERE id = $1 AND state = 'running' AND attempt = $2 AND {holder} = $3"
		expired = " WHERE {ours} AND state = 'running' AND attempted_at < {ago}"
		dead    = " WHERE id IN {ids} AND {ours} AND state IN " + deadStates + " RETURNING id"
		waiting = "SELECT count(*) FROM {job} WHERE {ours} AND state IN " + waitingStates
		columns = `SELECT id, CASE WHEN state = 'running' THEN 'running' WHEN state IN ` + deadStates + ` THEN 'dead'
			WHEN scheduled_at <= {now} THEN 'waiting' ELSE 'scheduled' END, attempt, {args}, {metadata}, {last}, {holder},
			{epoch(created_at)}, {epoch(scheduled_at)}, {epoch(attempted_at)}, {epoch(finalized_at)} FROM {job} WHERE {ours} AND `
		page = " AND id > $1 AND ($2 = '' OR {plugin} = $2) ORDER BY id LIMIT $3"
	)
	in := wordsFor(kind, schema).Replace
	return &statements{
		count: in("SELECT (" + waiting + "), (" + waiting + " AND {plugin} = $1)"),
		states: in(`SELECT count(*) FILTER (WHERE state = 'running'),
			count(*) FILTER (WHERE state IN ` + waitingStates + ` AND scheduled_at <= {now}),
			count(*) FILTER (WHERE state IN ` + waitingStates + ` AND scheduled_at > {now}),
			count(*) FILTER (WHERE state IN ` + deadStates + `),
			coalesce({epoch({now})} - min({epoch(scheduled_at)}) FILTER (WHERE state IN ` + waitingStates + ` AND scheduled_at <= {now}), 0)
			FROM {job} WHERE {ours} AND state IN ` + keptStates),
		list:        in(columns + "state IN " + openStates + page),
		listDead:    in(columns + "state IN " + deadStates + page),
		show:        in(columns + "id = $1 AND state IN " + keptStates),
		busy:        in("SELECT EXISTS (SELECT 1 FROM {job} WHERE {ours} AND ({by} = $1 OR {holder} = $1) AND (state = 'running' OR state IN " + waitingStates + " AND scheduled_at <= {now}))"),
		due:         in("SELECT EXISTS (SELECT 1 FROM {job} WHERE {ours} AND state = 'available' AND scheduled_at <= {now})"),
		done:        in("UPDATE {job} SET state = 'completed', finalized_at = {now}, args = '{}'" + held),
		discard:     in("UPDATE {job} SET state = 'discarded', finalized_at = {now}, errors = {failure4}" + held),
		retry:       in("UPDATE {job} SET state = 'available', scheduled_at = {after}, errors = {failure5}" + held),
		requeue:     in("UPDATE {job} SET state = 'available', scheduled_at = {after}, attempt = attempt - 1, metadata = {merged}" + held),
		begin:       in("UPDATE {job} SET metadata = {begins}" + held),
		renew:       in("UPDATE {job} SET attempted_at = {now} WHERE id IN {list} AND state = 'running' AND {holder} = $1 RETURNING id, attempt"),
		expired:     in("SELECT EXISTS (SELECT 1 FROM {job}" + expired + "), {epoch({now})}"),
		discardLost: in("UPDATE {job} SET state = 'discarded', finalized_at = {now}, errors = {lost(CASE WHEN {begun} = attempt THEN CAST($3 AS text) ELSE CAST($2 AS text) END)lost}" + expired + " AND ({begun} = attempt OR attempt >= max_attempts) RETURNING id"),
		rescue:      in("UPDATE {job} SET state = 'available', scheduled_at = {now}, errors = {lost(CAST($2 AS text))lost}" + expired + " RETURNING id"),
		retryDead:   in("UPDATE {job} SET state = 'available', scheduled_at = {now}, finalized_at = NULL, attempt = 0, metadata = {fresh}" + dead),
		removeDead:  in("DELETE FROM {job}" + dead),
	}
}
