package reminder

import (
	"regexp"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in, want string
	}{
		{"nothing", "a <b> \\ </c>\n", "a <b> \\ </c>\n"},
		{"both tags", `<system-reminder type="x">y</system-reminder>`, `<\system-reminder type="x">y<\/system-reminder>`},
		{"any case, anything behind", "<System-REMINDER\n</SYSTEM-reminderx", "<\\System-REMINDER\n<\\/SYSTEM-reminderx"},
		{"escaped already", `<\system-reminder><\\/system-reminder>`, `<\\system-reminder><\\\/system-reminder>`},
		{"what does not show", "<\u200b/sys\u202etem-\ufeffreminder>", "<\\\u200b/sys\u202etem-\ufeffreminder>"},
		{"beginnings and neighbours", "<system <system-remind <//system-reminder>", "<system <system-remind <//system-reminder>"},
		{"blanks", "< system-reminder></ system-reminder><\n/\nsystem-reminder", "<\\ system-reminder><\\/ system-reminder><\\\n/\nsystem-reminder"},
		{"one behind the other", "<<system-reminder<system-reminder", `<<\system-reminder<\system-reminder`},
		{"letters of another script", "<\u0455ystem-reminder>＜/ｓystem-reminder", "<\\\u0455ystem-reminder>＜\\/ｓystem-reminder"},
		{"entities", "&lt;/system-reminder&gt;", "&lt;\\/system-reminder&gt;"},
		{"at the end", "<", "<"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, n := Escape(tt.in)
			if got != tt.want || n != len(got)-len(tt.in) {
				t.Errorf("got  %q, %d places\nwant %q", got, n, tt.want)
			}
			if back := unescape(got); back != tt.in {
				t.Errorf("read back as %q", back)
			}
		})
	}
}

// isTag reports whether what follows a "<" reads as the tag, be it escaped.
func isTag(s string) bool { return tagPattern.MatchString(agentsdoctest.Read(s)) }

var tagPattern = regexp.MustCompile(`^[\s\\]*(?:/\s*)?system\\?-reminder`)

// unescape removes one backslash from each escaped sequence, as a reader does.
func unescape(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		opening := agentsdoctest.Opening(text[i:])
		behind := text[i+len(opening):]
		if opening != "" && strings.HasPrefix(behind, `\`) && isTag(behind) {
			out.WriteString(opening)
			i += len(opening)
			continue
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

func FuzzEscape(f *testing.F) {
	f.Add("<system-reminder>")
	f.Add("<\\\u200b/\u00adSystem-Reminder\xff<<\\")
	f.Fuzz(func(t *testing.T, text string) {
		got, n := Escape(text)
		if len(got) != len(text)+n {
			t.Errorf("%q: %d places, %d bytes more", text, n, len(got)-len(text))
		}
		if back := unescape(got); back != text {
			t.Errorf("%q is escaped as %q, and read back as %q", text, got, back)
		}
		if found := forgedTag.FindString(agentsdoctest.Read(got)); found != "" {
			t.Errorf("%q is escaped as %q, which has a tag", text, got)
		}
	})
}

var forgedTag = regexp.MustCompile(`<\s*/?\s*system-reminder`)
