package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/owned"
)

// mostAnswer bounds an answer: agents take less.
const mostAnswer = 16 << 20

// exchange makes one HTTP request. The package net/http alone would double the size and the start of this program.
func (f *flags) exchange(conn io.ReadWriter, payload []byte) ([]byte, error) {
	head := "POST /hook/" + f.host + "?event=" + f.event + " HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(payload)) + "\r\n"
	secret, err := token()
	if err != nil {
		return nil, err
	}
	if secret != "" {
		head += "Authorization: Bearer " + secret + "\r\n"
	}
	head += "\r\n"
	if _, err := conn.Write(append([]byte(head), payload...)); err != nil {
		return nil, lostError("the gateway did not take the event: " + err.Error())
	}
	header, body, err := read(conn)
	if err != nil {
		return nil, lostError("the gateway did not answer: " + err.Error())
	}
	status, _, _ := strings.Cut(header, "\r\n")
	switch {
	case !strings.HasPrefix(status, "HTTP/1."):
		return nil, errBroken
	case !strings.Contains(status, " 200 "):
		if strings.Contains(status, " 409 ") { // an event that decides, given to a hook that is installed for another one
			f.event = "" // it says nothing of what happens
		}
		return nil, errors.New("the gateway decided nothing: " + strings.TrimSpace(string(body)))
	case lengthOf(header) != len(body):
		return nil, errBroken
	}
	return body, nil
}

// lostError is a gateway that gave no whole answer.
type lostError string

func (e lostError) Error() string { return string(e) }

const errBroken lostError = "the gateway broke off its answer"

// read reads an answer as far as its header says, or to the end. What comes behind a whole answer does not count, nor does
// an error there: a gateway that refuses a request before it has read it breaks the connection.
func read(conn io.Reader) (header string, body []byte, err error) {
	var reply []byte
	for part := make([]byte, 32<<10); ; {
		n, err := conn.Read(part)
		reply = append(reply, part[:n]...)
		head, body, whole := bytes.Cut(reply, []byte("\r\n\r\n"))
		if whole {
			length := lengthOf(string(head))
			whole = length >= 0 && len(body) >= length
		}
		switch {
		case whole, errors.Is(err, io.EOF):
			return string(head), body, nil
		case err != nil:
			return "", nil, err
		case len(reply) > mostAnswer:
			return "", nil, errBroken
		}
	}
}

// token is GRAPNEL_TOKEN, or the one that grapnel serve made for this user; empty if there is none.
func token() (string, error) {
	where, secret := "GRAPNEL_TOKEN", os.Getenv("GRAPNEL_TOKEN") //nolint:gosec // the name of a variable
	if secret == "" {
		dir := os.Getenv("XDG_DATA_HOME")
		if !filepath.IsAbs(dir) {
			home, err := os.UserHomeDir()
			if err != nil || !filepath.IsAbs(home) {
				return "", nil //nolint:nilerr // a relative one would depend on the repository that the agent works in
			}
			dir = home + "/.local/share"
		}
		where = dir + "/grapnel/token"
		data, err := owned.Token(where)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return "", nil
		case err != nil:
			return "", errors.New("the token: " + err.Error())
		}
		secret = strings.TrimSpace(string(data))
	}
	if strings.ContainsAny(secret, "\r\n") { // it would be something else in a request
		return "", errors.New(where + " holds no token: one line")
	}
	return secret, nil
}

// lengthOf is the length that a header announces; -1 if it announces none.
func lengthOf(header string) int {
	for line := range strings.SplitSeq(header, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		if strings.EqualFold(name, "Content-Length") {
			if n, err := strconv.Atoi(strings.TrimSpace(value)); err == nil {
				return n
			}
		}
	}
	return -1
}
