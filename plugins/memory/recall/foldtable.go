package recall

import (
	"strconv"
	"strings"
)

// The tables of this file were made once from the Unicode Character Database: case
// folding and compatibility decomposition, less the accents. Added are the letters
// without decomposition that are typed without their stroke: æ, ð, đ, ħ, ı, ł, ŋ, ø,
// œ, þ, ŧ. They are long because they are tables.

// foldingOf returns what a character is folded to that is not simply put in lower
// case, and nothing for all others.
func foldingOf(c rune) string {
	switch {
	case c < 0x250, c >= 0x1E00 && c < 0x1F00:
		return foldLatin(c)
	case c >= 0x370 && c < 0x400, c >= 0x1F00 && c < 0x2000:
		return foldGreek(c)
	case c >= 0x400 && c < 0x530:
		return foldCyrillic(c)
	case c < 0x370, c >= 0x2000 && c < 0x2E00, c >= 0xFB00 && c <= 0xFB06:
		return foldSign(c)
	}
	return ""
}

// foldLatin folds Latin letters.
func foldLatin(c rune) string {
	if folded := foldLatinToK(c); folded != "" {
		return folded
	}
	return foldLatinFromL(c)
}

// foldLatinToK folds to what begins with a to k, and to digits.
func foldLatinToK(c rune) string {
	switch c {
	case '¹':
		return "1"
	case '²':
		return "2"
	case '³':
		return "3"
	case 'ª', 'À', 'Á', 'Â', 'Ã', 'Ä', 'Å', 'à', 'á', 'â', 'ã', 'ä', 'å', 'Ā', 'ā', 'Ă', 'ă', 'Ą', 'ą', 'Ǎ', 'ǎ',
		'Ǟ', 'ǟ', 'Ǡ', 'ǡ', 'Ǻ', 'ǻ', 'Ȁ', 'ȁ', 'Ȃ', 'ȃ', 'Ȧ', 'ȧ', 'Ḁ', 'ḁ', 'Ạ', 'ạ', 'Ả', 'ả', 'Ấ', 'ấ', 'Ầ', 'ầ',
		'Ẩ', 'ẩ', 'Ẫ', 'ẫ', 'Ậ', 'ậ', 'Ắ', 'ắ', 'Ằ', 'ằ', 'Ẳ', 'ẳ', 'Ẵ', 'ẵ', 'Ặ', 'ặ':
		return "a"
	case 'Æ', 'æ', 'Ǣ', 'ǣ', 'Ǽ', 'ǽ':
		return "ae"
	case 'ẚ':
		return "aʾ"
	case 'Ḃ', 'ḃ', 'Ḅ', 'ḅ', 'Ḇ', 'ḇ':
		return "b"
	case 'Ç', 'ç', 'Ć', 'ć', 'Ĉ', 'ĉ', 'Ċ', 'ċ', 'Č', 'č', 'Ḉ', 'ḉ':
		return "c"
	case 'Ð', 'ð', 'Ď', 'ď', 'Đ', 'đ', 'Ḋ', 'ḋ', 'Ḍ', 'ḍ', 'Ḏ', 'ḏ', 'Ḑ', 'ḑ', 'Ḓ', 'ḓ':
		return "d"
	case 'Ǆ', 'ǅ', 'ǆ', 'Ǳ', 'ǲ', 'ǳ':
		return "dz"
	case 'È', 'É', 'Ê', 'Ë', 'è', 'é', 'ê', 'ë', 'Ē', 'ē', 'Ĕ', 'ĕ', 'Ė', 'ė', 'Ę', 'ę', 'Ě', 'ě', 'Ȅ', 'ȅ', 'Ȇ',
		'ȇ', 'Ȩ', 'ȩ', 'Ḕ', 'ḕ', 'Ḗ', 'ḗ', 'Ḙ', 'ḙ', 'Ḛ', 'ḛ', 'Ḝ', 'ḝ', 'Ẹ', 'ẹ', 'Ẻ', 'ẻ', 'Ẽ', 'ẽ', 'Ế', 'ế', 'Ề',
		'ề', 'Ể', 'ể', 'Ễ', 'ễ', 'Ệ', 'ệ':
		return "e"
	case 'Ḟ', 'ḟ':
		return "f"
	case 'Ĝ', 'ĝ', 'Ğ', 'ğ', 'Ġ', 'ġ', 'Ģ', 'ģ', 'Ǧ', 'ǧ', 'Ǵ', 'ǵ', 'Ḡ', 'ḡ':
		return "g"
	case 'Ĥ', 'ĥ', 'Ħ', 'ħ', 'Ȟ', 'ȟ', 'Ḣ', 'ḣ', 'Ḥ', 'ḥ', 'Ḧ', 'ḧ', 'Ḩ', 'ḩ', 'Ḫ', 'ḫ', 'ẖ':
		return "h"
	case 'Ì', 'Í', 'Î', 'Ï', 'ì', 'í', 'î', 'ï', 'Ĩ', 'ĩ', 'Ī', 'ī', 'Ĭ', 'ĭ', 'Į', 'į', 'ı', 'Ɨ', 'Ǐ', 'ǐ', 'Ȉ',
		'ȉ', 'Ȋ', 'ȋ', 'Ḭ', 'ḭ', 'Ḯ', 'ḯ', 'Ỉ', 'ỉ', 'Ị', 'ị':
		return "i"
	case 'Ĳ', 'ĳ':
		return "ij"
	case 'Ĵ', 'ĵ', 'ǰ':
		return "j"
	case 'Ķ', 'ķ', 'ĸ', 'Ǩ', 'ǩ', 'Ḱ', 'ḱ', 'Ḳ', 'ḳ', 'Ḵ', 'ḵ':
		return "k"
	}
	return ""
}

// foldLatinFromL folds to what begins with l to z, and to letters that are no others.
//
//nolint:gocyclo // a table
func foldLatinFromL(c rune) string {
	switch c {
	case 'Ĺ', 'ĺ', 'Ļ', 'ļ', 'Ľ', 'ľ', 'Ł', 'ł', 'Ḷ', 'ḷ', 'Ḹ', 'ḹ', 'Ḻ', 'ḻ', 'Ḽ', 'ḽ':
		return "l"
	case 'Ǉ', 'ǈ', 'ǉ':
		return "lj"
	case 'Ḿ', 'ḿ', 'Ṁ', 'ṁ', 'Ṃ', 'ṃ':
		return "m"
	case 'Ñ', 'ñ', 'Ń', 'ń', 'Ņ', 'ņ', 'Ň', 'ň', 'Ŋ', 'ŋ', 'Ǹ', 'ǹ', 'Ṅ', 'ṅ', 'Ṇ', 'ṇ', 'Ṉ', 'ṉ', 'Ṋ', 'ṋ':
		return "n"
	case 'Ǌ', 'ǋ', 'ǌ':
		return "nj"
	case 'º', 'Ò', 'Ó', 'Ô', 'Õ', 'Ö', 'Ø', 'ò', 'ó', 'ô', 'õ', 'ö', 'ø', 'Ō', 'ō', 'Ŏ', 'ŏ', 'Ő', 'ő', 'Ơ', 'ơ',
		'Ǒ', 'ǒ', 'Ǫ', 'ǫ', 'Ǭ', 'ǭ', 'Ǿ', 'ǿ', 'Ȍ', 'ȍ', 'Ȏ', 'ȏ', 'Ȫ', 'ȫ', 'Ȭ', 'ȭ', 'Ȯ', 'ȯ', 'Ȱ', 'ȱ', 'Ṍ', 'ṍ',
		'Ṏ', 'ṏ', 'Ṑ', 'ṑ', 'Ṓ', 'ṓ', 'Ọ', 'ọ', 'Ỏ', 'ỏ', 'Ố', 'ố', 'Ồ', 'ồ', 'Ổ', 'ổ', 'Ỗ', 'ỗ', 'Ộ', 'ộ', 'Ớ', 'ớ',
		'Ờ', 'ờ', 'Ở', 'ở', 'Ỡ', 'ỡ', 'Ợ', 'ợ':
		return "o"
	case 'Œ', 'œ':
		return "oe"
	case 'Ṕ', 'ṕ', 'Ṗ', 'ṗ':
		return "p"
	case 'Ŕ', 'ŕ', 'Ŗ', 'ŗ', 'Ř', 'ř', 'Ȑ', 'ȑ', 'Ȓ', 'ȓ', 'Ṙ', 'ṙ', 'Ṛ', 'ṛ', 'Ṝ', 'ṝ', 'Ṟ', 'ṟ':
		return "r"
	case 'Ś', 'ś', 'Ŝ', 'ŝ', 'Ş', 'ş', 'Š', 'š', 'ſ', 'Ș', 'ș', 'Ṡ', 'ṡ', 'Ṣ', 'ṣ', 'Ṥ', 'ṥ', 'Ṧ', 'ṧ', 'Ṩ', 'ṩ',
		'ẛ':
		return "s"
	case 'ß', 'ẞ':
		return "ss"
	case 'Ţ', 'ţ', 'Ť', 'ť', 'Ŧ', 'ŧ', 'Ț', 'ț', 'Ṫ', 'ṫ', 'Ṭ', 'ṭ', 'Ṯ', 'ṯ', 'Ṱ', 'ṱ', 'ẗ':
		return "t"
	case 'Þ', 'þ':
		return "th"
	case 'Ù', 'Ú', 'Û', 'Ü', 'ù', 'ú', 'û', 'ü', 'Ũ', 'ũ', 'Ū', 'ū', 'Ŭ', 'ŭ', 'Ů', 'ů', 'Ű', 'ű', 'Ų', 'ų', 'Ư',
		'ư', 'Ǔ', 'ǔ', 'Ǖ', 'ǖ', 'Ǘ', 'ǘ', 'Ǚ', 'ǚ', 'Ǜ', 'ǜ', 'Ȕ', 'ȕ', 'Ȗ', 'ȗ', 'Ṳ', 'ṳ', 'Ṵ', 'ṵ', 'Ṷ', 'ṷ', 'Ṹ',
		'ṹ', 'Ṻ', 'ṻ', 'Ụ', 'ụ', 'Ủ', 'ủ', 'Ứ', 'ứ', 'Ừ', 'ừ', 'Ử', 'ử', 'Ữ', 'ữ', 'Ự', 'ự':
		return "u"
	case 'Ṽ', 'ṽ', 'Ṿ', 'ṿ':
		return "v"
	case 'Ŵ', 'ŵ', 'Ẁ', 'ẁ', 'Ẃ', 'ẃ', 'Ẅ', 'ẅ', 'Ẇ', 'ẇ', 'Ẉ', 'ẉ', 'ẘ':
		return "w"
	case 'Ẋ', 'ẋ', 'Ẍ', 'ẍ':
		return "x"
	case 'Ý', 'ý', 'ÿ', 'Ŷ', 'ŷ', 'Ÿ', 'Ȳ', 'ȳ', 'Ẏ', 'ẏ', 'ẙ', 'Ỳ', 'ỳ', 'Ỵ', 'ỵ', 'Ỷ', 'ỷ', 'Ỹ', 'ỹ':
		return "y"
	case 'Ź', 'ź', 'Ż', 'ż', 'Ž', 'ž', 'Ƶ', 'ƶ', 'Ẑ', 'ẑ', 'Ẓ', 'ẓ', 'Ẕ', 'ẕ':
		return "z"
	case 'Ǯ', 'ǯ':
		return "ʒ"
	case 'ŉ':
		return "ʼn"
	case 'µ':
		return "μ"
	}
	return ""
}

// foldGreek folds Greek letters.
func foldGreek(c rune) string {
	switch c {
	case 'ʹ':
		return "ʹ"
	case 'Ά', 'ά', 'ἀ', 'ἁ', 'ἂ', 'ἃ', 'ἄ', 'ἅ', 'ἆ', 'ἇ', 'Ἀ', 'Ἁ', 'Ἂ', 'Ἃ', 'Ἄ', 'Ἅ', 'Ἆ', 'Ἇ', 'ὰ', 'ά', 'ᾰ',
		'ᾱ', 'ᾶ', 'Ᾰ', 'Ᾱ', 'Ὰ', 'Ά':
		return "α"
	case 'ᾀ', 'ᾁ', 'ᾂ', 'ᾃ', 'ᾄ', 'ᾅ', 'ᾆ', 'ᾇ', 'ᾈ', 'ᾉ', 'ᾊ', 'ᾋ', 'ᾌ', 'ᾍ', 'ᾎ', 'ᾏ', 'ᾲ', 'ᾳ', 'ᾴ', 'ᾷ', 'ᾼ':
		return "αι"
	case 'ϐ':
		return "β"
	case 'Έ', 'έ', 'ϵ', 'ἐ', 'ἑ', 'ἒ', 'ἓ', 'ἔ', 'ἕ', 'Ἐ', 'Ἑ', 'Ἒ', 'Ἓ', 'Ἔ', 'Ἕ', 'ὲ', 'έ', 'Ὲ', 'Έ':
		return "ε"
	case 'Ή', 'ή', 'ἠ', 'ἡ', 'ἢ', 'ἣ', 'ἤ', 'ἥ', 'ἦ', 'ἧ', 'Ἠ', 'Ἡ', 'Ἢ', 'Ἣ', 'Ἤ', 'Ἥ', 'Ἦ', 'Ἧ', 'ὴ', 'ή', 'ῆ',
		'Ὴ', 'Ή':
		return "η"
	case 'ᾐ', 'ᾑ', 'ᾒ', 'ᾓ', 'ᾔ', 'ᾕ', 'ᾖ', 'ᾗ', 'ᾘ', 'ᾙ', 'ᾚ', 'ᾛ', 'ᾜ', 'ᾝ', 'ᾞ', 'ᾟ', 'ῂ', 'ῃ', 'ῄ', 'ῇ', 'ῌ':
		return "ηι"
	case 'ϑ':
		return "θ"
	case 'Ί', 'ΐ', 'Ϊ', 'ί', 'ϊ', 'ἰ', 'ἱ', 'ἲ', 'ἳ', 'ἴ', 'ἵ', 'ἶ', 'ἷ', 'Ἰ', 'Ἱ', 'Ἲ', 'Ἳ', 'Ἴ', 'Ἵ', 'Ἶ', 'Ἷ',
		'ὶ', 'ί', 'ι', 'ῐ', 'ῑ', 'ῒ', 'ΐ', 'ῖ', 'ῗ', 'Ῐ', 'Ῑ', 'Ὶ', 'Ί':
		return "ι"
	case 'ϰ':
		return "κ"
	case 'Ό', 'ό', 'ὀ', 'ὁ', 'ὂ', 'ὃ', 'ὄ', 'ὅ', 'Ὀ', 'Ὁ', 'Ὂ', 'Ὃ', 'Ὄ', 'Ὅ', 'ὸ', 'ό', 'Ὸ', 'Ό':
		return "ο"
	case 'ϖ':
		return "π"
	case 'ϱ', 'ῤ', 'ῥ', 'Ῥ':
		return "ρ"
	case 'ς', 'ϲ', 'Ϲ':
		return "σ"
	case 'Ύ', 'Ϋ', 'ΰ', 'ϋ', 'ύ', 'ϒ', 'ϓ', 'ϔ', 'ὐ', 'ὑ', 'ὒ', 'ὓ', 'ὔ', 'ὕ', 'ὖ', 'ὗ', 'Ὑ', 'Ὓ', 'Ὕ', 'Ὗ', 'ὺ',
		'ύ', 'ῠ', 'ῡ', 'ῢ', 'ΰ', 'ῦ', 'ῧ', 'Ῠ', 'Ῡ', 'Ὺ', 'Ύ':
		return "υ"
	case 'ϕ':
		return "φ"
	case 'Ώ', 'ώ', 'ὠ', 'ὡ', 'ὢ', 'ὣ', 'ὤ', 'ὥ', 'ὦ', 'ὧ', 'Ὠ', 'Ὡ', 'Ὢ', 'Ὣ', 'Ὤ', 'Ὥ', 'Ὦ', 'Ὧ', 'ὼ', 'ώ', 'ῶ',
		'Ὼ', 'Ώ':
		return "ω"
	case 'ᾠ', 'ᾡ', 'ᾢ', 'ᾣ', 'ᾤ', 'ᾥ', 'ᾦ', 'ᾧ', 'ᾨ', 'ᾩ', 'ᾪ', 'ᾫ', 'ᾬ', 'ᾭ', 'ᾮ', 'ᾯ', 'ῲ', 'ῳ', 'ῴ', 'ῷ', 'ῼ':
		return "ωι"
	}
	return ""
}

// foldCyrillic folds Cyrillic letters.
func foldCyrillic(c rune) string {
	switch c {
	case 'Ӑ', 'ӑ', 'Ӓ', 'ӓ':
		return "а"
	case 'Ѓ', 'ѓ':
		return "г"
	case 'Ѐ', 'Ё', 'ѐ', 'ё', 'Ӗ', 'ӗ':
		return "е"
	case 'Ӂ', 'ӂ', 'Ӝ', 'ӝ':
		return "ж"
	case 'Ӟ', 'ӟ':
		return "з"
	case 'Ѝ', 'Й', 'й', 'ѝ', 'Ӣ', 'ӣ', 'Ӥ', 'ӥ':
		return "и"
	case 'Ќ', 'ќ':
		return "к"
	case 'Ӧ', 'ӧ':
		return "о"
	case 'Ў', 'ў', 'Ӯ', 'ӯ', 'Ӱ', 'ӱ', 'Ӳ', 'ӳ':
		return "у"
	case 'Ӵ', 'ӵ':
		return "ч"
	case 'Ӹ', 'ӹ':
		return "ы"
	case 'Ӭ', 'ӭ':
		return "э"
	case 'Ї', 'ї':
		return "і"
	case 'Ѷ', 'ѷ':
		return "ѵ"
	case 'Ӛ', 'ӛ':
		return "ә"
	case 'Ӫ', 'ӫ':
		return "ө"
	}
	return ""
}

// foldSign folds letters and numbers that are written as signs, and ligatures.
func foldSign(c rune) string {
	switch {
	case c >= 0x2160 && c <= 0x217F: // Roman numbers, in two cases
		return strings.Fields("i ii iii iv v vi vii viii ix x xi xii l c d m")[(c-0x2160)%16]
	case c >= 0x2460 && c <= 0x2473: // in circles
		return strconv.Itoa(int(c - 0x2460 + 1))
	}
	return foldOtherSign(c)
}

// foldOtherSign folds what is raised, lowered or of another shape.
//
//nolint:gocyclo,funlen // a table
func foldOtherSign(c rune) string {
	switch c {
	case '⁰', '₀', '⓪':
		return "0"
	case '₁':
		return "1"
	case '₂':
		return "2"
	case '₃':
		return "3"
	case '⁴', '₄':
		return "4"
	case '⁵', '₅':
		return "5"
	case '⁶', '₆':
		return "6"
	case '⁷', '₇':
		return "7"
	case '⁸', '₈':
		return "8"
	case '⁹', '₉':
		return "9"
	case 'ₐ', '\u212B':
		return "a"
	case 'ℬ':
		return "b"
	case 'ℂ', 'ℭ':
		return "c"
	case 'ⅅ', 'ⅆ':
		return "d"
	case 'ₑ', 'ℯ', 'ℰ', 'ⅇ':
		return "e"
	case 'ℱ':
		return "f"
	case '\uFB00':
		return "ff"
	case '\uFB03':
		return "ffi"
	case '\uFB04':
		return "ffl"
	case '\uFB01':
		return "fi"
	case '\uFB02':
		return "fl"
	case 'ℊ':
		return "g"
	case 'ʰ', 'ₕ', 'ℋ', 'ℌ', 'ℍ', 'ℎ', 'ℏ':
		return "h"
	case 'ɨ', 'ⁱ', 'ℐ', 'ℑ', 'ℹ', 'ⅈ':
		return "i"
	case 'ʲ', 'ⅉ', 'ⱼ':
		return "j"
	case 'ₖ':
		return "k"
	case 'ˡ', 'ₗ', 'ℒ', 'ℓ':
		return "l"
	case 'ₘ', 'ℳ':
		return "m"
	case 'ⁿ', 'ₙ', 'ℕ':
		return "n"
	case 'ₒ', 'ℴ':
		return "o"
	case 'ₚ', 'ℙ':
		return "p"
	case 'ℚ':
		return "q"
	case 'ʳ', 'ℛ', 'ℜ', 'ℝ':
		return "r"
	case 'ˢ', 'ₛ':
		return "s"
	case '\uFB05', '\uFB06':
		return "st"
	case 'ₜ':
		return "t"
	case 'ⱽ':
		return "v"
	case 'ʷ':
		return "w"
	case 'ˣ', 'ₓ':
		return "x"
	case 'ʸ':
		return "y"
	case 'ℤ', 'ℨ':
		return "z"
	case 'ₔ':
		return "ə"
	case 'ℇ':
		return "ɛ"
	case 'ˠ':
		return "ɣ"
	case 'ʱ':
		return "ɦ"
	case 'ʴ':
		return "ɹ"
	case 'ʵ':
		return "ɻ"
	case 'ʶ':
		return "ʁ"
	case 'ˤ':
		return "ʕ"
	case 'ℽ', 'ℾ':
		return "γ"
	case 'ℼ', 'ℿ':
		return "π"
	case 'ℵ':
		return "א"
	case 'ℶ':
		return "ב"
	case 'ℷ':
		return "ג"
	case 'ℸ':
		return "ד"
	case 'ⵯ':
		return "ⵡ"
	}
	return ""
}
