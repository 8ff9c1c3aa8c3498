// Package storetest is the conformance suite of package store: what every
// database must do alike, and a real PostgreSQL server to try it on.
//
//   - [Run] runs the suite on databases that the caller makes.
//   - [SQLite] makes an embedded one, [StartPostgres] starts a server that makes
//     others.
//   - [Sample] makes manifests to keep.
//
// It is for tests only. Failures of one database that the other cannot have
// (files, disks, locks) are tested beside package store.
//
// Stability: experimental until 1.0.
package storetest
