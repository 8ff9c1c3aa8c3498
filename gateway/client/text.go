package client

import (
	"encoding/json"
	"reflect"
	"unicode/utf8"
)

// checkText refuses params with a string that is not valid UTF-8. The gateway does
// too, but would not see one: encoding/json repairs it in silence.
func checkText(params any) error {
	if params == nil || validText(reflect.ValueOf(params)) {
		return nil
	}
	return &Error{
		Number: -32602, Code: "invalid_params", Message: "params: a string is not valid UTF-8",
		Data: json.RawMessage(`{"code":"invalid_params"}`),
	}
}

// validText looks at all strings that a value holds.
func validText(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return utf8.ValidString(v.String())
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || validText(v.Elem())
	case reflect.Struct:
		for _, field := range v.Fields() {
			if !validText(field) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return true // base64, or JSON that the gateway sees as it is
		}
		for i := range v.Len() {
			if !validText(v.Index(i)) {
				return false
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if !validText(it.Key()) || !validText(it.Value()) {
				return false
			}
		}
	default: // numbers have no text
	}
	return true
}
