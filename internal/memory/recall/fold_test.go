package recall

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, fold(c.in)); diff != "" {
				t.Errorf("fold(%q) (-want +got):\n%s", c.in, diff)
			}
		})
	}
}
