package backtest

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/inputlog"
	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/store"
)

// workspace is the one of agents' hooks, so that plugins find the state that they have kept.
const workspace = "local"

// Log is the source of the threads in Grapnel's own log.
const Log = "log"

// File is an agent's transcript, or a thread of the log.
type File struct {
	// Source is the agent's name, or [Log].
	Source string
	// Workspace is where its turns take place.
	Workspace string
	// Path and ModTime identify a transcript and its content, or name a thread. Size is in bytes, or the number of records.
	Path    string
	Size    int64
	ModTime time.Time
	// Read reads it, and counts what the log lacks of it.
	Read func(*inputlog.Lacks) iter.Seq2[*agent.Said, error]
}

// Query says which transcripts are wanted.
type Query struct {
	// Agents are some whose transcripts can be read.
	Agents []*agent.Agent
	// Home is the user's home directory, and Env returns a variable of the environment.
	Home string
	Env  func(string) string
	// Since excludes files that were not changed after it; the zero time excludes none.
	Since time.Time
	// Sample is how many of the files are wanted at most; 0 is all. Which ones depends on their paths alone.
	Sample int
}

// Found are the files of a query, the newest first, and counts of what is not among them.
type Found struct {
	Files      []File
	Unreadable []Problem
	// Old were changed before the period, Irregular are links, pipes and devices, Unsampled are left out by Query.Sample, and
	// Surplus is what exceeds the bound of files.
	Old, Irregular, Unsampled, Surplus int
}

// Problem is a file or directory that could not be read, or not to its end.
type Problem struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

const (
	mostFiles    = 100_000
	mostProblems = 100
)

// Find finds the transcripts of a query. It follows no links below an agent's directory.
func Find(ctx context.Context, q Query) (*Found, error) {
	f := &Found{}
	seen := map[string]bool{}
	for _, a := range q.Agents {
		for _, dir := range a.Transcripts.Dirs(q.Home, q.Env) {
			root, err := filepath.EvalSymlinks(dir)
			if err != nil {
				f.problem(dir, err)
				continue
			}
			if err := filepath.WalkDir(root, f.visit(ctx, a, root, &q, seen)); err != nil {
				return nil, err
			}
		}
	}
	f.sample(q.Sample)
	return f, nil
}

// AddLog adds the threads of a log that have records in the period of a query.
func (f *Found) AddLog(ctx context.Context, s *store.Store, q Query) error {
	for th, err := range inputlog.Threads(ctx, s, "", q.Since) {
		if err != nil {
			return err
		}
		f.add(File{Log, th.WorkspaceID, th.ThreadID, th.Manifests, th.NewestAt, func(lacks *inputlog.Lacks) iter.Seq2[*agent.Said, error] {
			return inputlog.Read(ctx, s, th.WorkspaceID, th.ThreadID, q.Since, lacks)
		}})
	}
	f.sample(q.Sample)
	return nil
}

func (f *Found) visit(ctx context.Context, a *agent.Agent, root string, q *Query, seen map[string]bool) fs.WalkDirFunc {
	return func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			f.problem(path, err)
			return nil // the walk goes on behind it
		case d.IsDir():
			return nil
		}
		below, err := filepath.Rel(root, path)
		if err != nil || !a.Transcripts.Is(filepath.ToSlash(below)) || seen[path] {
			return nil //nolint:nilerr // it is below
		}
		seen[path] = true
		info, err := d.Info()
		switch {
		case err != nil:
			f.problem(path, err)
		case !info.Mode().IsRegular():
			f.Irregular++
		case info.ModTime().Before(q.Since):
			f.Old++
		default:
			read := func(*inputlog.Lacks) iter.Seq2[*agent.Said, error] { return a.Transcripts.Read(path) }
			f.add(File{a.Name, workspace, path, info.Size(), info.ModTime(), read})
		}
		return nil
	}
}

func (f *Found) add(file File) {
	if len(f.Files) == mostFiles {
		f.Surplus++
		return
	}
	f.Files = append(f.Files, file)
}

func (f *Found) problem(path string, err error) {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	if !errors.Is(err, fs.ErrNotExist) && len(f.Unreadable) < mostProblems {
		f.Unreadable = append(f.Unreadable, Problem{path, err.Error()})
	}
}

// sample keeps at most n files, chosen by a hash of their paths, and puts the newest first; 0 keeps all.
func (f *Found) sample(n int) {
	if n > 0 && len(f.Files) > n {
		slices.SortFunc(f.Files, func(a, b File) int { return cmp.Compare(digest.Sum64(a.Path), digest.Sum64(b.Path)) })
		f.Unsampled += len(f.Files) - n
		f.Files = slices.Clip(f.Files[:n])
	}
	slices.SortFunc(f.Files, func(a, b File) int { return cmp.Or(b.ModTime.Compare(a.ModTime), cmp.Compare(a.Path, b.Path)) })
}
