// Package web is the gateway's page: the assets that gateway/internal/web/build makes of src, and how they are served.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:generate go -C build run .

//go:embed dist
var dist embed.FS

// Views are the first segments of the addresses of views.
func Views() []string {
	return []string{"manifests", "documents", "plugins", "try", "backtest", "jobs", "memory", "events"}
}

// Register adds the page to mux: its document at / and at the addresses of the views, and the assets beside it.
// Whoever may connect gets them; they hold nothing secret.
func Register(mux *http.ServeMux, guard func(http.Handler) http.Handler) {
	document := guard(http.HandlerFunc(serveDocument))
	mux.Handle("GET /{$}", document)
	for _, view := range Views() {
		mux.Handle("GET /"+view, document)
		mux.Handle("GET /"+view+"/", document)
	}
	for name, media := range assets() {
		mux.Handle("GET /assets/{version}/"+name, guard(&asset{name: name, media: media}))
	}
}

// assets are the files of dist beside the document, with their media types: those of the system may be others, and
// browsers run no script of another type.
func assets() map[string]string {
	const script = "text/javascript; charset=utf-8"
	return map[string]string{
		"app.js": script, "chunk.js": script, "documents.js": script, "editor.js": script,
		"app.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml",
	}
}

// policy lets the page load its own files and call its own gateway, and nothing else. The nonce is for the styles of
// the editor, which makes its own.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-%s'; connect-src 'self'; img-src 'self'; " +
	"form-action 'none'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// version is of all assets together: their addresses hold it, so that browsers need not ask for them again.
var version = sync.OnceValue(func() string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(assets())) {
		data, _ := dist.ReadFile("dist/" + name) // TestAssets reads each
		sum.Write(data)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
})

func harden(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

func serveDocument(w http.ResponseWriter, r *http.Request) {
	data, err := dist.ReadFile("dist/index.html")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	nonce, base := rand.Text(), "/assets/"+version()
	harden(w.Header())
	w.Header().Set("Content-Security-Policy", fmt.Sprintf(policy, nonce))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if strings.HasPrefix(r.URL.Path, "/documents") { // what app.js loads then
		w.Header().Set("Link", fmt.Sprintf("<%s/documents.js>; rel=modulepreload, <%[1]s/editor.js>; rel=modulepreload", base))
	}
	_, _ = strings.NewReplacer("NONCE", nonce, "ASSETS", base).WriteString(w, string(data)) // the client is gone, or reads it
}

// asset is one file of dist, compressed at its first use.
type asset struct {
	name, media string

	once        sync.Once
	plain, gzip []byte
	etag        string
	err         error
}

func (a *asset) load() {
	if a.plain, a.err = dist.ReadFile(path.Join("dist", a.name)); a.err != nil {
		return
	}
	sum := sha256.Sum256(a.plain)
	a.etag = `W/"` + hex.EncodeToString(sum[:12]) + `"` // weak: the same for both encodings
	var buf bytes.Buffer
	z, _ := gzip.NewWriterLevel(&buf, gzip.BestCompression) // a level that exists
	_, _ = z.Write(a.plain)                                 // into memory
	_ = z.Close()
	a.gzip = buf.Bytes()
}

func (a *asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.once.Do(a.load)
	if a.err != nil {
		http.Error(w, a.err.Error(), http.StatusInternalServerError)
		return
	}
	harden(w.Header())
	h := w.Header()
	h.Set("Content-Type", a.media)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	if r.PathValue("version") != version() {
		h.Set("Cache-Control", "no-cache") // a page of another version, still open: asked again each time, answered with 304
	}
	h.Set("ETag", a.etag)
	h.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("If-None-Match"), a.etag) { // or a list that has it
		w.WriteHeader(http.StatusNotModified)
		return
	}
	data := a.plain
	if takesGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		data = a.gzip
	}
	h.Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) // the client is gone, or reads it
}

// takesGzip reports whether a client takes gzip: q=0 is a refusal.
func takesGzip(accepted string) bool {
	for coding := range strings.SplitSeq(accepted, ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			_, q, weighted := strings.Cut(weight, "=")
			return !weighted || strings.Trim(q, " 0.") != ""
		}
	}
	return false
}
