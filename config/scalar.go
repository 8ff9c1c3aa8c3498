package config

import (
	"math/big"
	"strconv"
	"strings"
)

// maxNumber bounds the digits of a number, and maxExponent the digits of its
// exponent: decoders of JSON further on may need memory in proportion to them.
const (
	maxNumber   = 400
	maxExponent = 3
)

// resolve gives a scalar without quotes its kind by the core schema of YAML 1.2.
// Numbers come back as JSON writes them, with all their digits. A problem is why
// the scalar is refused.
func resolve(text string) (kind nodeKind, value, problem string) {
	// The order is that of the specification: the first form that fits.
	switch text {
	case "", "~", "null", "Null", "NULL":
		return nullNode, "", ""
	case "true", "True", "TRUE":
		return boolNode, "true", ""
	case "false", "False", "FALSE":
		return boolNode, "false", ""
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", ".nan", ".NaN", ".NAN":
		return numberNode, "0", text + " is no number that JSON has"
	}
	switch {
	case strings.HasPrefix(text, "0x"):
		return based(text, 16)
	case strings.HasPrefix(text, "0o"):
		return based(text, 8)
	}
	sign, whole, fraction, exponent, ok := splitNumber(text)
	if !ok {
		return textNode, text, ""
	}
	if len(text) > maxNumber || len(strings.TrimLeft(exponent, "eE+-")) > maxExponent {
		return numberNode, "0", "the number is too long"
	}
	if len(whole) > 1 && whole[0] == '0' {
		return numberNode, "0", text + " begins with 0, which some programs read as octal; write 0o for octal, leave the 0 away, or put it in quotes"
	}
	if whole == "" {
		whole = "0"
	}
	if fraction == "." {
		fraction = ".0"
	}
	return numberNode, strings.TrimPrefix(sign, "+") + whole + fraction + exponent, ""
}

// based reads a hexadecimal or octal number, which has no sign.
func based(text string, base int) (kind nodeKind, value, problem string) {
	digits := text[len("0x"):]
	if len(digits) > maxNumber {
		return textNode, text, ""
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok || strings.ContainsAny(digits, "+-") {
		return textNode, text, ""
	}
	return numberNode, n.String(), ""
}

// splitNumber takes a decimal number apart: the sign, the digits before the
// point, the point with the digits behind it, and the exponent with its letter.
func splitNumber(text string) (sign, whole, fraction, exponent string, ok bool) {
	rest := strings.TrimLeft(text, "+-")
	sign = text[:len(text)-len(rest)]
	whole, rest = leadingDigits(rest)
	if after, point := strings.CutPrefix(rest, "."); point {
		digits, _ := leadingDigits(after)
		fraction, rest = rest[:1+len(digits)], after[len(digits):]
	}
	if len(sign) > 1 || whole == "" && len(fraction) < 2 {
		return "", "", "", "", false
	}
	if rest != "" {
		digits, end := leadingDigits(strings.TrimLeft(rest[1:], "+-"))
		between := len(rest) - 1 - len(digits) - len(end)
		if rest[0]|0x20 != 'e' || digits == "" || end != "" || between > 1 {
			return "", "", "", "", false
		}
		exponent = rest
	}
	return sign, whole, fraction, exponent, true
}

// leadingDigits splits text behind its leading decimal digits.
func leadingDigits(text string) (digits, rest string) {
	rest = strings.TrimLeft(text, "0123456789")
	return text[:len(text)-len(rest)], rest
}

// wholeNumber reads a JSON number that must be an int.
func wholeNumber(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}
