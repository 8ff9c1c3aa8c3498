package tree

import "cmp"

// CheckActor refuses what is no name of an actor: what [CheckName] refuses, but for
// an empty one.
func CheckActor(actor string) error {
	if actor == "" {
		return nil
	}
	return CheckName("actor", actor)
}

// checkOptional is CheckID for an id that may be left out.
func checkOptional[T ~string](what string, id T) error {
	if id == "" {
		return nil
	}
	return CheckID(what, string(id))
}

// checkLimit is for limits of lists, where zero is the default.
func checkLimit(limit int) error {
	if limit < 0 || limit > MaxLimit {
		return Errorf(CodeInvalid, "limit: %d is not between 0 and %d", limit, MaxLimit)
	}
	return nil
}

// checkNumber refuses numbers that are too small.
func checkNumber[T int | int64](what string, n, least T) error {
	if n < least {
		return Errorf(CodeInvalid, "%s: %d is less than %d", what, n, least)
	}
	return nil
}

// Check refuses parameters that make no sense in any tree.
func (p CreateWorkspace) Check() error {
	return cmp.Or(checkOptional("id", p.ID), CheckName("name", p.Name), CheckActor(p.Actor))
}

// Check refuses parameters that make no sense in any tree.
func (p RenameWorkspace) Check() error {
	return cmp.Or(CheckID("workspace_id", p.WorkspaceID), CheckName("name", p.Name), CheckActor(p.Actor))
}

// Check refuses parameters that make no sense in any tree.
func (p DeleteWorkspace) Check() error {
	return cmp.Or(CheckID("workspace_id", p.WorkspaceID), CheckActor(p.Actor))
}

// Check refuses parameters that make no sense in any tree.
func (p CreateFolder) Check() error {
	return cmp.Or(CheckID("workspace_id", p.WorkspaceID), checkOptional("parent_id", p.ParentID),
		checkOptional("id", p.ID), CheckName("name", p.Name), CheckActor(p.Actor))
}

// Check refuses parameters that make no sense in any tree.
func (p RenameFolder) Check() error {
	return cmp.Or(CheckID("workspace_id", p.WorkspaceID), CheckID("folder_id", p.FolderID),
		CheckName("name", p.Name), CheckActor(p.Actor))
}

// Check refuses parameters that make no sense in any tree.
func (p MoveFolder) Check() error {
	return cmp.Or(CheckID("workspace_id", p.WorkspaceID), CheckID("folder_id", p.FolderID),
		checkOptional("parent_id", p.ParentID), CheckActor(p.Actor))
}

// Check refuses parameters that make no sense in any tree.
func (p DeleteFolder) Check() error {
	return cmp.Or(CheckID("workspace_id", p.WorkspaceID), CheckID("folder_id", p.FolderID), CheckActor(p.Actor))
}

// Check refuses parameters that make no sense in any tree.
func (p CreateThread) Check() error {
	return cmp.Or(CheckID("workspace_id", p.WorkspaceID), checkOptional("folder_id", p.FolderID),
		checkOptional("id", p.ID), CheckName("title", p.Title), CheckActor(p.Actor))
}

// Check refuses parameters that make no sense in any tree.
func (p RenameThread) Check() error {
	return cmp.Or(CheckID("workspace_id", p.WorkspaceID), CheckID("thread_id", p.ThreadID),
		CheckName("title", p.Title), CheckActor(p.Actor))
}

// Check refuses parameters that make no sense in any tree.
func (p MoveThread) Check() error {
	return cmp.Or(CheckID("workspace_id", p.WorkspaceID), CheckID("thread_id", p.ThreadID),
		checkOptional("folder_id", p.FolderID), CheckActor(p.Actor))
}

// Check refuses parameters that make no sense in any tree.
func (p DeleteThread) Check() error {
	return cmp.Or(CheckID("workspace_id", p.WorkspaceID), CheckID("thread_id", p.ThreadID), CheckActor(p.Actor))
}

// Check refuses what names no scope in any tree.
func (s Scope) Check() error {
	return cmp.Or(CheckID("workspace_id", s.WorkspaceID), checkOptional("folder_id", s.FolderID))
}

// Check refuses what names no thread in any tree.
func (t ThreadRef) Check() error {
	return cmp.Or(CheckID("workspace_id", t.WorkspaceID), CheckID("thread_id", t.ThreadID))
}

// Check refuses parameters that make no sense in any tree. The content is
// [Normalize]'s to judge.
func (p Save) Check() error {
	if err := cmp.Or(p.Scope.Check(), checkOptional("expected_doc_id", p.ExpectedDocID), CheckActor(p.Actor)); err != nil {
		return err
	}
	switch p.SaveReason {
	case "", Manual:
		return nil
	case Autosave:
		if p.ExpectedVersion == nil {
			return Errorf(CodeInvalid, "expected_version: an autosave says which version it is based on (0 for none)")
		}
		return nil
	default:
		return Errorf(CodeInvalid, "save_reason: %q is not %s or %s", p.SaveReason, Autosave, Manual)
	}
}

// Check refuses parameters that make no sense in any tree.
func (p ArchiveDoc) Check() error {
	return cmp.Or(p.Scope.Check(), checkOptional("expected_doc_id", p.ExpectedDocID), CheckActor(p.Actor))
}

// Check refuses parameters that make no sense in any tree.
func (p RestoreDoc) Check() error {
	return cmp.Or(p.Scope.Check(), checkOptional("doc_id", p.DocID), checkNumber("version", p.Version, 1), CheckActor(p.Actor))
}

// Check refuses parameters that make no sense in any tree.
func (q RevisionQuery) Check() error {
	return cmp.Or(q.Scope.Check(), checkOptional("doc_id", q.DocID), checkLimit(q.Limit),
		checkNumber("before_version", q.BeforeVersion, 0))
}

// Check refuses parameters that make no sense in any tree.
func (q ArchivedQuery) Check() error {
	return cmp.Or(q.Scope.Check(), checkLimit(q.Limit))
}

// Check refuses parameters that make no sense in any tree. The cursor is the
// store's to judge: one that it did not make is CodeInvalid.
func (q Query) Check() error {
	if err := cmp.Or(q.Scope.Check(), checkNumber("depth", q.Depth, 0)); err != nil {
		return err
	}
	switch q.Threads {
	case "", AllThreads, NoThreads:
		return nil
	default:
		return Errorf(CodeInvalid, "threads: %q is not %s or %s", q.Threads, AllThreads, NoThreads)
	}
}
