package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// answer is a response with its body.
type answer struct {
	status int
	header http.Header
	body   string
}

func get(t *testing.T, path string, change ...func(*http.Request)) answer {
	t.Helper()
	mux := http.NewServeMux()
	Register(mux, func(next http.Handler) http.Handler { return next })
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

func TestDocument(t *testing.T) {
	t.Parallel()

	nonces := map[string]bool{}
	for _, path := range []string{"/", "/manifests", "/manifests/01ABC", "/documents/w/folder/x", "/events"} {
		resp := get(t, path)
		policy := resp.header.Get("Content-Security-Policy")
		nonce := regexp.MustCompile(`'nonce-(\w{20,})'`).FindStringSubmatch(policy)
		if resp.status != http.StatusOK || nonce == nil || !strings.HasPrefix(policy, "default-src 'none'; script-src 'self';") || strings.Contains(policy, "unsafe") {
			t.Fatalf("%s: %d, policy %q", path, resp.status, policy)
		}
		nonces[nonce[1]] = true
		if !strings.Contains(resp.body, `content="`+nonce[1]+`"`) || regexp.MustCompile(`(?i)<style|style=|<script>|\son\w+=`).MatchString(resp.body) {
			t.Errorf("%s: the document lacks the nonce, or has something inline:\n%s", path, resp.body)
		}
		if strings.Contains(resp.body, "ASSETS") || strings.Count(resp.body, "/assets/"+version()+"/") != 4 {
			t.Errorf("%s: the addresses of the assets:\n%s", path, resp.body)
		}
		if loads := strings.Contains(resp.header.Get("Link"), "</assets/"+version()+"/editor.js>; rel=modulepreload"); loads != strings.HasPrefix(path, "/documents") {
			t.Errorf("%s: the links %q", path, resp.header.Get("Link"))
		}
		if resp.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", path, resp.header)
		}
	}
	if len(nonces) != 5 {
		t.Errorf("%d nonces of 5 answers", len(nonces))
	}
	if resp := get(t, "/nothing"); resp.status != http.StatusNotFound {
		t.Errorf("/nothing: %d", resp.status)
	}
}

func TestAssets(t *testing.T) {
	t.Parallel()

	for name, media := range assets() {
		want, err := os.ReadFile(filepath.Join("dist", name))
		if err != nil {
			t.Fatal(err)
		}
		address := "/assets/" + version() + "/" + name
		plain := get(t, address, func(r *http.Request) { r.Header.Set("Accept-Encoding", "br, gzip;q=0") })
		if got := plain.body; got != string(want) || plain.header.Get("Content-Type") != media || plain.header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %d bytes of %d as %s", name, len(got), len(want), plain.header.Get("Content-Type"))
		}
		small := get(t, address, func(r *http.Request) { r.Header.Set("Accept-Encoding", "br, gzip") })
		z, err := gzip.NewReader(strings.NewReader(small.body))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := io.ReadAll(z); err != nil || string(got) != string(want) {
			t.Errorf("%s: compressed it is another text (%v)", name, err)
		}
		if tag := small.header.Get("ETag"); tag != plain.header.Get("ETag") || !strings.HasPrefix(tag, "W/") {
			t.Errorf("%s: the tag %q for other bytes than %q", name, tag, plain.header.Get("ETag"))
		}
		for _, known := range []string{plain.header.Get("ETag"), `W/"other", ` + plain.header.Get("ETag")} {
			again := get(t, address, func(r *http.Request) { r.Header.Set("If-None-Match", known) })
			if again.status != http.StatusNotModified || again.body != "" {
				t.Errorf("%s: asked again with %s: %d", name, known, again.status)
			}
		}
		older := get(t, "/assets/older/"+name)
		if older.body != plain.body || older.header.Get("Cache-Control") != "no-cache" || !strings.HasSuffix(plain.header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: for a page of another version %q, else %q", name, older.header.Get("Cache-Control"), plain.header.Get("Cache-Control"))
		}
	}
}

// TestSizes: what a view loads first, and what the editor adds, compressed.
func TestSizes(t *testing.T) {
	t.Parallel()

	for _, part := range []struct {
		names []string
		most  int
	}{{[]string{"app.js", "chunk.js"}, 45 << 10}, {[]string{"documents.js", "editor.js"}, 145 << 10}, {[]string{"editor.js"}, 130 << 10}, {[]string{"app.css"}, 12 << 10}} {
		size := 0
		for _, name := range part.names {
			a := &asset{name: name}
			if a.load(); a.err != nil {
				t.Fatal(a.err)
			}
			size += len(a.gzip)
		}
		t.Logf("%v: %d bytes of %d", part.names, size, part.most)
		if size > part.most {
			t.Errorf("%v have %d bytes compressed, more than %d", part.names, size, part.most)
		}
	}
}
