package recall

import (
	"strings"
	"testing"
)

// wordsOf returns the tokens of a text before they are stemmed, with blanks between.
func wordsOf(text string) string {
	var words []string
	for t := range tokens(text) {
		words = append(words, t.plain)
	}
	return strings.Join(words, " ")
}

func TestTokens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"no words", " … -- '’' 👍 ++ # _ . \u200b", ""},
		{"words", "Run the tests, please.", "run the tests please"},
		{"snake case", "orders_customer_created_idx", "orders customer created idx"},
		{"camel case", "parseCamtEntry S3Bucket", "parse camt entry s3 bucket"},
		{"acronyms", "HTTPServer userID URLs", "httpserver user id urls"},
		{"kebab case", "invoice-writer --dry-run=true", "invoice writer dry run true"},
		{"a path", "importer/camt.go", "importer camt go"},
		{"a version", "v1.26.3 UTF-8 utf8", "v1 26 3 utf 8 utf8"},
		{"apostrophes", "don't Anna's l'été qu’il", "don t anna s l ete qu il"},
		{"signs of languages", "C++ and C#", "c and c"},
		{"accents", "Schlüsselgröße", "schlusselgrosse"},
		{"Chinese", "数据库端口", "数据 据库 库端 端口"},
		{"one character", "库", "库"},
		{"Chinese with Latin", "用Redis集群", "用 redis 集群"},
		{"Japanese", "データベースは東京", "デー ータ タベ ベー ース スは は東 東京"},
		{"Japanese with a dot", "ジョン・スミス", "ジョ ョン スミ ミス"},
		{"half width is full width", "ﾃﾞｰﾀ", "デー ータ"},
		{"Korean by words", "로그인 토큰", "로그 그인 토큰"},
		{"Korean beside Chinese", "서울市內", "서울 市內"},
		{"Thai", "ไทย", "ไท ทย"},
		{"Hindi", "हिन्दी", "हिन्दी"},
		{"marks alone", "\u0301\u0301", ""},
		{"not UTF-8", "ab\xffcd", "ab cd"},
		{"NUL", "ab\x00cd", "ab cd"},
		{"syntax of queries", `"drop" OR NEAR(a*, b) -c:d ^e`, "drop or near a b c d e"},
		{"a long word", strings.Repeat("x", 100), strings.Repeat("x", 64)},
		{"a word with more bytes than characters", strings.Repeat("ж", 40), strings.Repeat("ж", 40)},
		{"a capital behind an invisible sign", "e\u00adX a\u0301B", "e x a b"},
	} {
		if got := wordsOf(c.in); got != c.want {
			t.Errorf("%s: tokens of %q: %q, want %q", c.name, c.in, got, c.want)
		}
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	same := [][2]string{
		{"Use tabs.", "use  TABS"},
		{"« Réponds en français »", "« reponds en francais »"},
		{"- \"Stand-up at 9:45!\"", "stand-up at 9:45"},
		{"ＡＰＩを使う。", "apiを使う"},
	}
	for _, pair := range same {
		if a, b := Key(pair[0]), Key(pair[1]); a != b || a == "" {
			t.Errorf("keys %q and %q of %q and %q, want one", a, b, pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{"Use C++", "Use C#"}, {"port 5432", "port 5433"}, {"A before B", "B before A"}} {
		if a, b := Key(pair[0]), Key(pair[1]); a == b {
			t.Errorf("%q and %q have the key %q", pair[0], pair[1], a)
		}
	}
}

func TestFold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"ASCII", "ReadMe2", "readme2"},
		{"empty", "", ""},
		{"accents", "Éléphant", "elephant"},
		{"accents, decomposed", "E\u0301le\u0301phant", "elephant"},
		{"German", "Straße Übergröße", "strasse ubergrosse"},
		{"strokes and ligatures", "Łódź Ærø œuvre ﬁle İstanbul", "lodz aero oeuvre file istanbul"},
		{"Vietnamese", "Nguyễn", "nguyen"},
		{"Greek with final sigma", "Ὀδυσσεύς", "οδυσσευσ"},
		{"Cyrillic", "Ёлка", "елка"},
		{"full width", "ＡＰＩ２", "api2"},
		{"half width katakana", "ﾃﾞｰﾀﾍﾞｰｽ ﾊﾟｽ", "データベース パス"},
		{"kana, decomposed", "か\u3099は\u309Aウ\u3099う\u3099", "がぱヴゔ"},
		{"kana with a sign that it cannot have", "あ\u3099\u3099か\u309A", "あか"},
		{"a sign of voice on nothing", "\u3099", ""},
		{"Hangul, decomposed", "\u1112\u1161\u11ab\u1100\u1173\u11af", "한글"},
		{"jamo that join nothing", "a\u1161\u11ab", "a\u1161\u11ab"},
		{"a second final consonant", "\u1112\u1161\u11ab\u11ab", "한\u11ab"},
		{"letters of mathematics", "𝐁𝑜𝒍𝖽𝟙𝟿", "bold19"},
		{"numbers in signs", "m² ① Ⅳ", "m2 1 iv"},
		{"what is invisible", "pass\u200bword\u00ad s\ufe0f", "password s"},
		{"Arabic without vowel signs", "مُحَـمَّد", "محمد"},
		{"Hebrew without points", "שָׁלוֹם", "שלום"},
		{"Hindi keeps its vowel signs", "हिन्दी", "हिन्दी"},
		{"an emoji stays", "👍🏽", "👍🏽"},
	} {
		if got := fold(c.in); got != c.want {
			t.Errorf("%s: fold(%q) is %q, want %q", c.name, c.in, got, c.want)
		}
	}
}
