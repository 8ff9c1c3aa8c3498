// Package secret tells whether a text holds what nobody should store: keys, tokens,
// passwords, numbers of cards.
//
// It is a pure function of the text. It says by which pattern something was found
// and where, and never what: a [Finding] holds no part of the text, so it can go into
// a diagnostic or a log.
//
// It is a seat belt and no vault. A secret that looks like any word is only found by
// what stands before it ("my password is …"), and whoever wants to hide one from it
// can. It looks for secrets of machines and for passwords, not for personal data.
//
// What is found errs to one side: a text that is refused costs a person a word of
// explanation, a stored key costs a key. What is common and no secret is left alone,
// and tests hold it to that: UUIDs, hashes of commits and files, pictures in base64,
// public keys and certificates, placeholders, and prose about passwords.
//
// Where to start: [Scanner.Find] in secret.go; the table of patterns is in
// patterns.go. A new pattern is a row there and rows in patterns_test.go, which has
// to show what it finds and what it leaves alone.
//
// Stability: experimental.
package secret
