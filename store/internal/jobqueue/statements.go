package jobqueue

import (
	"strings"

	"github.com/grapnelhq/grapnel/internal/sqldb"
)

// statements are the SQL for one kind of database.
type statements struct {
	lock  string // on PostgreSQL: makes the counts of concurrent callers add up
	alone string // as lock, for one caller at a time
	count string // the waiting jobs, and those of the plugin $1 among them
	add   string // adds a job of the plugin $1, with the key $2, the text $3, up to $4 attempts, by the process $5, due in $6 seconds
	// due asks whether a job is due. take lets the process $1 have up to $2 of them.
	due, take string
	states    string // the running, due, scheduled and dead jobs, and for how many seconds the oldest has been due
	// list and listDead select up to $3 jobs after the id $1, of the plugin $2 unless it is empty; show selects the job $1.
	list, listDead, show string
	busy                 string // asks whether a job that the process $1 has added or taken is running or due
	// done, forget, discard, retry and requeue end the attempt $2 of the process $3 at the job $1, if it is current. Done
	// keeps the key, and forget is for jobs without one. Discard and retry note the cause $4 and the text $5 of a failure;
	// retry and requeue offer the job again after $6 seconds, and requeue notes the reason $5.
	done, forget, discard, retry, requeue string
	begin                                 string // notes that the attempt must not be repeated
	renew                                 string // the leases of the process $1 on the jobs $2, a JSON list; returns those it still holds
	// expired asks for the time, and whether leases expired $1 seconds ago. discardLost, then rescue end such attempts with
	// the failure $2 and return the ids. discardLost takes the last attempts, and those that must not be repeated, with
	// the failure $3.
	expired, discardLost, rescue string
	clean                        string // removes up to $3 jobs that were done $1 seconds ago, or dead $2 seconds ago
	retryDead, removeDead        string // return which of the jobs $1, a JSON list, were dead
}

func statementsFor(kind sqldb.Kind) *statements {
	const (
		held    = " WHERE id = $1 AND state = 'running' AND attempt = $2 AND holder = $3"
		offer   = "UPDATE jobs SET state = 'waiting', due = {now}"
		expired = " WHERE state = 'running' AND renewed < {now} - $1"
		dead    = " WHERE id IN (SELECT {value} FROM {each($1)}) AND state = 'dead' RETURNING id"
		columns = `SELECT id, CASE WHEN state <> 'waiting' THEN state WHEN due <= {now} THEN 'waiting' ELSE 'scheduled' END,
			plugin, job, attempt, requeued, why, code, error, holder, added, due, renewed, ended FROM jobs WHERE `
		page = " AND id > $1 AND ($2 = '' OR plugin = $2) ORDER BY id LIMIT $3"
	)
	in := wordsFor(kind).Replace
	s := &statements{
		count: "SELECT count(*), count(*) FILTER (WHERE plugin = $1) FROM jobs WHERE state = 'waiting'",
		add: in(`INSERT INTO jobs (plugin, key, job, attempts, added_by, added, due)
			VALUES ($1, $2, $3, $4, $5, {now}, {now} + $6) ON CONFLICT DO NOTHING`),
		due: in("SELECT EXISTS (SELECT 1 FROM jobs WHERE state = 'waiting' AND due <= {now})"),
		take: in(`UPDATE jobs SET state = 'running', attempt = attempt + 1, holder = $1, renewed = {now} WHERE id IN
			(SELECT id FROM jobs WHERE state = 'waiting' AND due <= {now} ORDER BY due, id LIMIT $2{skip})
			RETURNING id, attempt, requeued, added_by, job`),
		states: in(`SELECT count(*) FILTER (WHERE state = 'running'), count(*) FILTER (WHERE state = 'waiting' AND due <= {now}),
			count(*) FILTER (WHERE state = 'waiting' AND due > {now}), count(*) FILTER (WHERE state = 'dead'),
			coalesce({now} - min(due) FILTER (WHERE state = 'waiting' AND due <= {now}), 0)
			FROM jobs WHERE state IN ('waiting', 'running', 'dead')`),
		list:        in(columns + "state IN ('waiting', 'running')" + page),
		listDead:    in(columns + "state = 'dead'" + page),
		show:        in(columns + "id = $1 AND state <> 'done'"),
		busy:        in("SELECT EXISTS (SELECT 1 FROM jobs WHERE (added_by = $1 OR holder = $1) AND (state = 'running' OR state = 'waiting' AND due <= {now}))"),
		done:        in("UPDATE jobs SET state = 'done', ended = {now}, job = ''" + held),
		forget:      "DELETE FROM jobs" + held,
		discard:     in("UPDATE jobs SET state = 'dead', ended = {now}, code = $4, error = $5" + held),
		retry:       in(offer + " + $6, code = $4, error = $5" + held),
		requeue:     in(offer + " + $6, code = $4, why = $5, attempt = attempt - 1, begun = 0, requeued = requeued + 1" + held),
		begin:       "UPDATE jobs SET begun = attempt" + held,
		renew:       in("UPDATE jobs SET renewed = {now} WHERE id IN (SELECT {value} FROM {each($2)}) AND state = 'running' AND holder = $1 RETURNING id, attempt"),
		expired:     in("SELECT EXISTS (SELECT 1 FROM jobs" + expired + "), {now}"),
		discardLost: in("UPDATE jobs SET state = 'dead', ended = {now}, code = 'interrupted', error = CASE WHEN begun = attempt THEN $3 ELSE $2 END" + expired + " AND (begun = attempt OR attempt >= attempts) RETURNING id"),
		rescue:      in(offer + ", code = 'interrupted', error = $2" + expired + " RETURNING id"),
		clean: in(`DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE ended > 0
			AND (state = 'done' AND ended < {now} - $1 OR state = 'dead' AND ended < {now} - $2) LIMIT $3{skip})`),
		retryDead:  in(offer + ", ended = 0, attempt = 0, begun = 0, requeued = 0, added_by = ''" + dead),
		removeDead: in("DELETE FROM jobs" + dead),
	}
	if kind == sqldb.Postgres {
		s.lock, s.alone = "SELECT pg_advisory_xact_lock_shared(hashtext('grapnel jobs'))", "SELECT pg_advisory_xact_lock(hashtext('grapnel jobs'))"
	}
	return s
}

// wordsFor replaces {words} in statements.
func wordsFor(kind sqldb.Kind) *strings.Replacer {
	if kind == sqldb.SQLite {
		return strings.NewReplacer("{now}", "unixepoch('subsec')", "{value}", "value", "{each(", "json_each(", ")}", ")", "{skip}", "")
	}
	return strings.NewReplacer("{now}", "extract(epoch from now())::float8", "{value}", "value::bigint",
		"{each(", "json_array_elements_text(", ")}", "::json)", "{skip}", " FOR UPDATE SKIP LOCKED")
}
