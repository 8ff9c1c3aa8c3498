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
func exchange(conn io.ReadWriter, host, event string, payload []byte) ([]byte, error) {
	head := "POST /hook/" + host + "?event=" + event + " HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(payload)) + "\r\n"
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
	case strings.Contains(status, " 409 "):
		return nil, otherEventError(strings.TrimSpace(string(body)))
	case !strings.Contains(status, " 200 "):
		return nil, errors.New("the gateway decided nothing: " + strings.TrimSpace(string(body)))
	case lengthOf(header) != len(body):
		return nil, errBroken
	}
	return body, nil
}

// otherEventError is a payload of an event that decides, given to a hook that is installed for another one.
type otherEventError string

func (e otherEventError) Error() string { return "the gateway decided nothing: " + string(e) }

// lostError is a gateway that gave no whole answer.
type lostError string

func (e lostError) Error() string { return string(e) }

const errBroken lostError = "the gateway broke off its answer"

// read reads an answer to its end: the gateway closes a connection of HTTP/1.0.
func read(conn io.Reader) (header string, body []byte, err error) {
	reply, err := io.ReadAll(io.LimitReader(conn, mostAnswer+1))
	if err == nil && len(reply) > mostAnswer {
		err = errBroken
	}
	head, body, _ := bytes.Cut(reply, []byte("\r\n\r\n"))
	return string(head), body, err
}

// token is GRAPNEL_TOKEN, or the one that grapnel serve made for this user; empty if there is none.
func token() (string, error) {
	if secret := os.Getenv("GRAPNEL_TOKEN"); secret != "" {
		return secret, checkToken("GRAPNEL_TOKEN", secret)
	}
	dir := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil || !filepath.IsAbs(home) {
			return "", nil //nolint:nilerr // a relative one would depend on the repository that the agent works in
		}
		dir = home + "/.local/share"
	}
	path := dir + "/grapnel/token"
	data, err := owned.Token(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", nil
	case err != nil:
		return "", errors.New("the token: " + err.Error())
	}
	secret := strings.TrimSpace(string(data))
	return secret, checkToken(path, secret)
}

// checkToken keeps a token from being anything else in a request.
func checkToken(where, secret string) error {
	if strings.ContainsAny(secret, "\r\n") {
		return errors.New(where + " holds no token: one line")
	}
	return nil
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
