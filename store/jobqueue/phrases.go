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
	// states has how many jobs are running, due, waiting for their time, and dead.
	states string
	// open has the ids of jobs that may still be offered, busy of those that are
	// running or due. soon asks whether there is work to be taken.
	open, busy, soon string
	// done, dead, retry and requeue end an attempt of the job $1, if it still is the
	// attempt $2 of the process $3. Dead notes the failure $4; retry and requeue
	// offer the job again after $4 seconds, and note the failure or what else is to
	// be known, $5. Those that end in Later leave it to River's scheduler to offer
	// it.
	done, dead, retry, requeue, retryLater, requeueLater string
	// renew renews the leases of the process $1 on the jobs $2, a list in JSON, and
	// has those that it still holds.
	renew string
	// bury and rescue end attempts whose lease ran out $1 seconds ago and note the
	// failure $2: bury of jobs that may have no other attempt, rescue of the rest.
	// expired asks whether there are any.
	expired, bury, rescue string
	// retryDead and removeDead are about the dead job $1.
	retryDead, removeDead string
}

// Lists of states. River has some that it never gives to our jobs by itself; its
// tools may.
const (
	waitingStates = "('available', 'scheduled', 'retryable', 'pending')"
	deadStates    = "('discarded', 'cancelled')"
	// keptStates are all but completed, of which there may be very many.
	keptStates = "('available', 'scheduled', 'retryable', 'pending', 'running', 'discarded', 'cancelled')"
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
				strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'attempt', attempt, 'error', $2, 'trace', ''))`,
			"{merged}", "json_patch(metadata, $5)",
			"{list}", "(SELECT value FROM json_each($2))",
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
		"{lost}", `array_append(errors, jsonb_build_object('at', to_json(now()), 'attempt', attempt, 'error', $2::text, 'trace', ''))`,
		"{merged}", "metadata || $5::jsonb",
		"{list}", "(SELECT value::bigint FROM json_array_elements_text($2::json))",
	)
}

func phrasesFor(kind sqldb.Kind, schema string) *phrases {
	const (
		held    = " WHERE id = $1 AND state = 'running' AND attempt = $2 AND {holder} = $3"
		expired = " WHERE {ours} AND state = 'running' AND attempted_at < {ago}"
		dead    = " WHERE id = $1 AND {ours} AND state IN " + deadStates
		waiting = "SELECT count(*) FROM {job} WHERE {ours} AND state IN " + waitingStates
	)
	in := wordsFor(kind, schema).Replace
	return &phrases{
		count: in("SELECT (" + waiting + "), (" + waiting + " AND {plugin} = $1)"),
		states: in(`SELECT count(*) FILTER (WHERE state = 'running'),
			count(*) FILTER (WHERE state IN ` + waitingStates + ` AND scheduled_at <= {now}),
			count(*) FILTER (WHERE state IN ` + waitingStates + ` AND scheduled_at > {now}),
			count(*) FILTER (WHERE state IN ` + deadStates + `)
			FROM {job} WHERE {ours} AND state IN ` + keptStates),
		open: in("SELECT id FROM {job} WHERE {ours} AND (state = 'running' OR state IN " + waitingStates + ")"),
		busy: in(`SELECT id FROM {job} WHERE {ours} AND state = 'running' UNION ALL
			SELECT id FROM {job} WHERE {ours} AND state IN ('available', 'scheduled', 'retryable') AND scheduled_at <= {now}`),
		soon:         in("SELECT EXISTS (SELECT 1 FROM {job} WHERE {ours} AND state = 'available' AND scheduled_at <= {now})"),
		done:         in("UPDATE {job} SET state = 'completed', finalized_at = {now}, args = '{}'" + held),
		dead:         in("UPDATE {job} SET state = 'discarded', finalized_at = {now}, errors = {failure4}" + held),
		retry:        in("UPDATE {job} SET state = 'available', scheduled_at = {after}, errors = {failure5}" + held),
		retryLater:   in("UPDATE {job} SET state = 'retryable', scheduled_at = {after}, errors = {failure5}" + held),
		requeue:      in("UPDATE {job} SET state = 'available', scheduled_at = {after}, attempt = attempt - 1, metadata = {merged}" + held),
		requeueLater: in("UPDATE {job} SET state = 'scheduled', scheduled_at = {after}, attempt = attempt - 1, metadata = {merged}" + held),
		renew:        in("UPDATE {job} SET attempted_at = {now} WHERE id IN {list} AND state = 'running' AND {holder} = $1 RETURNING id, attempt"),
		expired:      in("SELECT EXISTS (SELECT 1 FROM {job}" + expired + ")"),
		bury:         in("UPDATE {job} SET state = 'discarded', finalized_at = {now}, errors = {lost}" + expired + " AND attempt >= max_attempts"),
		rescue:       in("UPDATE {job} SET state = 'available', scheduled_at = {now}, errors = {lost}" + expired),
		retryDead:    in("UPDATE {job} SET state = 'available', scheduled_at = {now}, finalized_at = NULL, attempt = 0" + dead),
		removeDead:   in("DELETE FROM {job}" + dead),
	}
}
