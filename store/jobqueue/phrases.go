package jobqueue

import (
	"strings"

	"github.com/grapnelhq/grapnel/store/sqldb"
)

const (
	// queueName is the queue's name within River's tables, and jobKind what River
	// calls all of our jobs: whose job it is stands in the job.
	queueName = "grapnel"
	jobKind   = "grapnel"
)

// phrases are our statements in a database's words. Each is about the jobs of our
// queue only.
type phrases struct {
	// count has how many jobs wait, and how many of them are the plugin $1's.
	count string
	// states has how many jobs are running, due, waiting for their time, and dead, and
	// for how many seconds the oldest has been due.
	states string
	// list and listDead have the jobs behind the id $1, of the plugin $2 if it is not
	// empty, $3 of them at most; show has the job $1.
	list, listDead, show string
	// open has the ids of jobs that may still be offered, busy of those that are
	// running or due. soon asks whether there is work to be taken.
	open, busy, soon string
	// done, dead, retry and requeue end an attempt of the job $1, if it still is the
	// attempt $2 of the process $3. Dead notes the failure $4; retry and requeue
	// offer the job again after $4 seconds, and note the failure or what else is to
	// be known, $5. Those that end in Later leave it to River's scheduler to offer
	// it.
	done, dead, retry, requeue, retryLater, requeueLater string
	// begin adds $4 to what is known of the job.
	begin string
	// renew renews the leases of the process $1 on the jobs $2, a list in JSON, and
	// has those that it still holds.
	renew string
	// The next end attempts whose lease ran out $1 seconds ago, note the failure $2,
	// and have the ids of the jobs: interrupted those that have begun what must not be
	// repeated, bury those of jobs that may have no other attempt, rescue the rest.
	// expired asks whether there are any, and what time it is.
	expired, interrupted, bury, rescue string
	// retryDead and removeDead are about the dead jobs $1, a list in JSON, and have
	// the ids of those that there were.
	retryDead, removeDead string
}

// Lists of states. River has some that it never gives to our jobs by itself; its
// tools may.
const (
	waitingStates = "('available', 'scheduled', 'retryable', 'pending')"
	deadStates    = "('discarded', 'cancelled')"
	// keptStates are all but completed, of which there may be very many.
	keptStates = "('available', 'scheduled', 'retryable', 'pending', 'running', 'discarded', 'cancelled')"
	// openStates are those that may still be offered.
	openStates = "('available', 'scheduled', 'retryable', 'pending', 'running')"
	// anew is what is known of a job that begins anew.
	anew = `{"begun":0,"requeued":0}`
)

// wordsFor are what stands for {words} in statements.
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
			"{failure4}", "json_insert(coalesce(errors, json('[]')), '$[#]', json($4))",
			"{failure5}", "json_insert(coalesce(errors, json('[]')), '$[#]', json($5))",
			"{lost}", `json_insert(coalesce(errors, json('[]')), '$[#]', json_object('at',
				strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'attempt', attempt, 'error', $2, 'trace', '', 'code', 'interrupted'))`,
			"{merged}", "json_patch(metadata, $5)",
			"{begun}", "json_extract(metadata, '$.begun')",
			"{begins}", "json_patch(metadata, $4)",
			"{anew}", "json_patch(metadata, '"+anew+"')",
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
		"{failure4}", "array_append(errors, $4::jsonb)",
		"{failure5}", "array_append(errors, $5::jsonb)",
		"{lost}", `array_append(errors, jsonb_build_object('at', to_json(now()), 'attempt', attempt, 'error', $2::text, 'trace', '', 'code', 'interrupted'))`,
		"{merged}", "metadata || $5::jsonb",
		"{begun}", "(metadata->>'begun')::bigint",
		"{begins}", "metadata || $4::jsonb",
		"{anew}", "metadata || '"+anew+"'::jsonb",
		"{list}", "(SELECT value::bigint FROM json_array_elements_text($2::json))",
		"{ids}", "(SELECT value::bigint FROM json_array_elements_text($1::json))",
		"{args}", "args::text",
		"{metadata}", "metadata::text",
		"{last}", "errors[array_upper(errors, 1)]::text",
		"{epoch(", "extract(epoch from ",
		")}", ")::float8",
	)
}

func phrasesFor(kind sqldb.Kind, schema string) *phrases {
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
	return &phrases{
		count: in("SELECT (" + waiting + "), (" + waiting + " AND {plugin} = $1)"),
		states: in(`SELECT count(*) FILTER (WHERE state = 'running'),
			count(*) FILTER (WHERE state IN ` + waitingStates + ` AND scheduled_at <= {now}),
			count(*) FILTER (WHERE state IN ` + waitingStates + ` AND scheduled_at > {now}),
			count(*) FILTER (WHERE state IN ` + deadStates + `),
			coalesce({epoch({now})} - min({epoch(scheduled_at)}) FILTER (WHERE state IN ` + waitingStates + ` AND scheduled_at <= {now}), 0)
			FROM {job} WHERE {ours} AND state IN ` + keptStates),
		list:     in(columns + "state IN " + openStates + page),
		listDead: in(columns + "state IN " + deadStates + page),
		show:     in(columns + "id = $1 AND state IN " + keptStates),
		open:     in("SELECT id FROM {job} WHERE {ours} AND (state = 'running' OR state IN " + waitingStates + ")"),
		busy: in(`SELECT id FROM {job} WHERE {ours} AND state = 'running' UNION ALL
			SELECT id FROM {job} WHERE {ours} AND state IN ('available', 'scheduled', 'retryable') AND scheduled_at <= {now}`),
		soon:         in("SELECT EXISTS (SELECT 1 FROM {job} WHERE {ours} AND state = 'available' AND scheduled_at <= {now})"),
		done:         in("UPDATE {job} SET state = 'completed', finalized_at = {now}, args = '{}'" + held),
		dead:         in("UPDATE {job} SET state = 'discarded', finalized_at = {now}, errors = {failure4}" + held),
		retry:        in("UPDATE {job} SET state = 'available', scheduled_at = {after}, errors = {failure5}" + held),
		retryLater:   in("UPDATE {job} SET state = 'retryable', scheduled_at = {after}, errors = {failure5}" + held),
		requeue:      in("UPDATE {job} SET state = 'available', scheduled_at = {after}, attempt = attempt - 1, metadata = {merged}" + held),
		requeueLater: in("UPDATE {job} SET state = 'scheduled', scheduled_at = {after}, attempt = attempt - 1, metadata = {merged}" + held),
		begin:        in("UPDATE {job} SET metadata = {begins}" + held),
		renew:        in("UPDATE {job} SET attempted_at = {now} WHERE id IN {list} AND state = 'running' AND {holder} = $1 RETURNING id, attempt"),
		expired:      in("SELECT EXISTS (SELECT 1 FROM {job}" + expired + "), {epoch({now})}"),
		interrupted:  in("UPDATE {job} SET state = 'discarded', finalized_at = {now}, errors = {lost}" + expired + " AND {begun} = attempt RETURNING id"),
		bury:         in("UPDATE {job} SET state = 'discarded', finalized_at = {now}, errors = {lost}" + expired + " AND attempt >= max_attempts RETURNING id"),
		rescue:       in("UPDATE {job} SET state = 'available', scheduled_at = {now}, errors = {lost}" + expired + " RETURNING id"),
		retryDead:    in("UPDATE {job} SET state = 'available', scheduled_at = {now}, finalized_at = NULL, attempt = 0, metadata = {anew}" + dead),
		removeDead:   in("DELETE FROM {job}" + dead),
	}
}
