package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// Frames of the stdio binding are JSON, one a line. They are translated from and to the bytes of the protobuf message,
// so that the code above handles one form of a frame. The translation is driven by jsonTable: it skips fields that the
// table does not have, and fails on values of the wrong type.

// jsonMessage describes one message: a line of jsonTable.
type jsonMessage struct {
	byNumber []*jsonField
	byName   map[string]*jsonField
}

type jsonField struct {
	number protowire.Number
	name   string
	key    string // the name in quotes, and the colon
	kind   jsonKind
	list   bool
	oneof  bool // at most one of these fields of the message may be there
	// message is the type of an object, or of the entries of a map.
	message *jsonMessage
}

type jsonKind uint8

const (
	jsonText jsonKind = iota
	jsonRaw           // the value itself
	jsonFlag
	jsonUint
	jsonInt
	jsonDouble
	jsonObject
	jsonMap
)

// frameForms are the messages of the two frames.
//
//nolint:gochecknoglobals // immutable
var frameForms = sync.OnceValue(func() (forms struct{ host, plugin *jsonMessage }) {
	kinds := map[string]jsonKind{"text": jsonText, "json": jsonRaw, "flag": jsonFlag, "uint": jsonUint, "int": jsonInt, "double": jsonDouble}
	messages := map[string]*jsonMessage{}
	message := func(name string) *jsonMessage {
		if messages[name] == nil {
			messages[name] = &jsonMessage{byName: map[string]*jsonField{}}
		}
		return messages[name]
	}
	for line := range strings.Lines(jsonTable) {
		words := strings.Fields(line)
		m := message(words[0])
		for _, word := range words[1:] {
			parts := strings.Split(word, ":")
			number, _ := strconv.Atoi(parts[0])
			f := &jsonField{number: protowire.Number(number), name: parts[1], key: strconv.Quote(parts[1]) + ":"}
			kind, oneof := strings.CutSuffix(parts[2], "|")
			kind, list := strings.CutPrefix(kind, "*")
			kind, isMap := strings.CutPrefix(kind, "%")
			var simple bool
			f.list, f.oneof = list, oneof
			switch f.kind, simple = kinds[kind]; {
			case isMap:
				f.kind, f.message = jsonMap, message(kind)
			case !simple:
				f.kind, f.message = jsonObject, message(kind)
			}
			for len(m.byNumber) <= number {
				m.byNumber = append(m.byNumber, nil)
			}
			m.byNumber[number], m.byName[f.name] = f, f
		}
	}
	forms.host, forms.plugin = messages["HostFrame"], messages["PluginFrame"]
	return forms
})

// appendJSON appends a message as an object. Fields of the same number must be in a row, as the forms write them.
func (m *jsonMessage) appendJSON(dst, data []byte) ([]byte, error) {
	dst = append(dst, '{')
	var last *jsonField
	for len(data) > 0 {
		number, typ, n := protowire.ConsumeTag(data)
		if n < 0 {
			return dst, errFrame
		}
		data = data[n:]
		n = protowire.ConsumeFieldValue(number, typ, data)
		if n < 0 {
			return dst, errFrame
		}
		value := data[:n]
		data = data[n:]
		if int(number) >= len(m.byNumber) || m.byNumber[number] == nil {
			continue
		}
		f := m.byNumber[number]
		if last != nil && f != last {
			dst = last.closeJSON(dst)
		}
		if last != nil {
			dst = append(dst, ',')
		}
		if f != last {
			dst = f.openJSON(append(dst, f.key...))
		}
		var err error
		if dst, err = f.appendValue(dst, typ, value); err != nil {
			return dst, err
		}
		last = f
	}
	if last != nil {
		dst = last.closeJSON(dst)
	}
	return append(dst, '}'), nil
}

func (f *jsonField) openJSON(dst []byte) []byte {
	switch {
	case f.list:
		return append(dst, '[')
	case f.kind == jsonMap:
		return append(dst, '{')
	}
	return dst
}

func (f *jsonField) closeJSON(dst []byte) []byte {
	switch {
	case f.list:
		return append(dst, ']')
	case f.kind == jsonMap:
		return append(dst, '}')
	}
	return dst
}

func (f *jsonField) appendValue(dst []byte, typ protowire.Type, value []byte) ([]byte, error) {
	if typ != f.kind.wireType() {
		return dst, fmt.Errorf("the field %s has a value of another type", f.name)
	}
	switch f.kind {
	case jsonFlag:
		v, _ := protowire.ConsumeVarint(value)
		return strconv.AppendBool(dst, v != 0), nil
	case jsonUint:
		v, _ := protowire.ConsumeVarint(value)
		return strconv.AppendUint(dst, v, 10), nil
	case jsonInt:
		v, _ := protowire.ConsumeVarint(value)
		return strconv.AppendInt(dst, int64(v), 10), nil //nolint:gosec // as protobuf has it
	case jsonDouble:
		v, _ := protowire.ConsumeFixed64(value)
		d := math.Float64frombits(v)
		if math.IsNaN(d) || math.IsInf(d, 0) {
			return dst, fmt.Errorf("the field %s has a number that JSON does not have", f.name)
		}
		return strconv.AppendFloat(dst, d, 'g', -1, 64), nil
	case jsonText, jsonRaw, jsonObject, jsonMap:
	}
	v, _ := protowire.ConsumeBytes(value)
	switch f.kind {
	case jsonRaw:
		return appendRaw(dst, v)
	case jsonObject:
		return f.message.appendJSON(dst, v)
	case jsonMap:
		return f.message.appendEntry(dst, v)
	default:
		return jsontext.AppendQuote(dst, v)
	}
}

func (k jsonKind) wireType() protowire.Type {
	switch k {
	case jsonFlag, jsonUint, jsonInt:
		return protowire.VarintType
	case jsonDouble:
		return protowire.Fixed64Type
	default:
		return protowire.BytesType
	}
}

// appendEntry appends the entry of a map, whose fields are its key and its value.
func (m *jsonMessage) appendEntry(dst, data []byte) ([]byte, error) {
	var key, value []byte
	var typ protowire.Type
	ok := eachField(data, func(number protowire.Number, t protowire.Type, rest []byte) int {
		n := protowire.ConsumeFieldValue(number, t, rest)
		switch {
		case n >= 0 && number == 1:
			key, _ = protowire.ConsumeBytes(rest)
		case n >= 0 && number == 2:
			value, typ = rest[:n], t
		}
		return n
	})
	if !ok {
		return dst, errFrame
	}
	dst, err := jsontext.AppendQuote(dst, key)
	if err != nil {
		return dst, err
	}
	dst = append(dst, ':')
	if value == nil { // proto3 leaves out what is empty
		return append(dst, map[jsonKind]string{jsonText: `""`, jsonFlag: "false"}[m.byNumber[2].kind]...), nil
	}
	return m.byNumber[2].appendValue(dst, typ, value)
}

// appendRaw appends JSON without the line ends that may stand between its parts.
func appendRaw(dst, value []byte) ([]byte, error) {
	at := len(dst)
	if dst = append(dst, value...); len(value) == 0 {
		return append(dst, "null"...), nil
	}
	for i, c := range dst[at:] {
		if c == '\n' || c == '\r' {
			dst[at+i] = ' '
		}
	}
	if raw := dst[at:]; jsonscan.Depth(raw) > maxLineDepth || !json.Valid(raw) {
		return dst, errors.New("embedded JSON: it is not valid, or nested too deeply")
	}
	return dst, nil
}

// maxLineDepth bounds how deep a line is nested: its messages, and the JSON in them, which has a bound of its own.
const maxLineDepth = 64

// notFrame is the error of a line that is not a frame: something else writes to the stream.
type notFrame struct {
	line []byte // its beginning
	why  error
}

func (e *notFrame) Error() string { return "a line that is not a frame: " + e.why.Error() }

// lineShown is how much of such a line is quoted.
const lineShown = 200

var (
	errNoObject    = errors.New("it is not a JSON object")
	errNoFrame     = errors.New("it lacks the incarnation")
	errInvalidUTF8 = errors.New("it is not valid UTF-8")
)

// parseLine translates a line into the bytes of a frame. unknown is the name of the last field that the form does not
// have. If the line is not a frame, the error is a *notFrame. If it is a frame with a mistake, id is set.
func (m *jsonMessage) parseLine(line []byte) (data []byte, id uint64, unknown string, err error) {
	p := lineParser{Decoder: jsonscan.Reader(line), out: make([]byte, 0, len(line))}
	if p.PeekKind() != '{' {
		return nil, 0, "", &notFrame{line, errNoObject}
	}
	id = idOfLine(line)
	if !utf8.Valid(line) {
		if id == 0 {
			return nil, 0, "", &notFrame{line, errInvalidUTF8}
		}
		return nil, id, "", errInvalidUTF8
	}
	if jsonscan.Depth(line) > maxLineDepth {
		return nil, id, "", &notFrame{line, jsonscan.ErrTooDeep}
	}
	if err = p.message(m, true); err == nil {
		err = jsonscan.End(p.Decoder)
	}
	switch {
	case err != nil && !p.wrong:
		return nil, id, "", &notFrame{line, err}
	case err != nil:
		return nil, id, "", err
	case !p.incarnation:
		return nil, id, "", &notFrame{line, errNoFrame}
	}
	return p.out, id, p.unknown, nil
}

// idOfLine reads the id in the first field of a line, which may be incomplete; 0 if it is not there.
func idOfLine(line []byte) uint64 {
	rest := line
	for _, part := range []string{"{", `"id"`, ":"} {
		var ok bool
		if rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, " \t"), []byte(part)); !ok {
			return 0
		}
	}
	rest = bytes.TrimLeft(rest, " \t")
	n := bytes.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if n < 0 {
		return 0
	}
	id, _ := strconv.ParseUint(string(rest[:n]), 10, 64)
	return id
}

// lineParser writes the fields that it scans.
type lineParser struct {
	*jsontext.Decoder

	out         []byte
	incarnation bool   // was there
	unknown     string // the last field of the frame that the form lacks
	wrong       bool   // an error is about a value, and not about the JSON
}

// wrongf is the error of a value that a field does not take, or of what is no JSON there.
func (p *lineParser) wrongf(f *jsonField, want string) error {
	if p.PeekKind() == jsontext.KindInvalid {
		return p.SkipValue()
	}
	p.wrong = true
	return fmt.Errorf("%s: want %s", f.name, want)
}

// message refuses a field that is there twice, and two of which there may be one: readers would not agree on which
// counts, and a deny could be the one that does not.
func (p *lineParser) message(m *jsonMessage, frame bool) error {
	var seen fieldSet
	var one *jsonField
	return jsonscan.Each(p.Decoder, func() error {
		quoted, err := p.ReadValue()
		if err != nil {
			return err
		}
		name := quoted[1 : len(quoted)-1]
		f := m.byName[string(name)]
		if f == nil {
			if frame {
				p.unknown = string(name)
			}
			return p.SkipValue()
		}
		switch {
		case seen.add(f.number):
			return p.wrongf(f, "one value, not two")
		case f.oneof && one != nil && p.PeekKind() != 'n':
			return p.wrongf(f, "nothing beside "+one.name)
		case f.oneof && one == nil && p.PeekKind() != 'n':
			one = f
		}
		p.incarnation = p.incarnation || frame && f.number == 2
		return p.field(f)
	})
}

// fieldSet holds numbers of fields, which are below 128.
type fieldSet [2]uint64

// add reports whether the number was there.
func (s *fieldSet) add(n protowire.Number) bool {
	word, bit := &s[n/64], uint64(1)<<(n%64)
	was := *word&bit != 0
	*word |= bit
	return was
}

func (p *lineParser) field(f *jsonField) error {
	start := p.PeekKind()
	switch {
	case start == 'n' && (f.kind != jsonRaw || f.list): // null means absent
		return p.SkipValue()
	case f.list && start != '[':
		return p.wrongf(f, "a list")
	case f.list:
		return jsonscan.Each(p.Decoder, func() error { return p.value(f) })
	case f.kind != jsonMap:
		return p.value(f)
	case start != '{':
		return p.wrongf(f, "an object")
	}
	return jsonscan.Each(p.Decoder, func() error {
		name, err := p.ReadValue()
		if err != nil {
			return err
		}
		p.tag(f, protowire.BytesType)
		mark := len(p.out)
		p.text(f.message.byNumber[1], name)
		if err := p.field(f.message.byNumber[2]); err != nil {
			return err
		}
		p.close(mark)
		return nil
	})
}

func (p *lineParser) value(f *jsonField) error {
	start := p.PeekKind()
	switch {
	case f.kind == jsonObject && start != '{':
		return p.wrongf(f, "an object")
	case f.kind == jsonText && start != '"':
		return p.wrongf(f, "a string")
	case f.kind == jsonObject:
		p.tag(f, protowire.BytesType)
		mark := len(p.out)
		if err := p.message(f.message, false); err != nil {
			if p.wrong {
				err = fmt.Errorf("%s.%w", f.name, err)
			}
			return err
		}
		p.close(mark)
		return nil
	}
	value, err := p.ReadValue()
	switch {
	case err != nil:
		return err
	case f.kind != jsonText:
		return p.scalar(f, value)
	}
	if bytes.IndexByte(value, '\\') >= 0 {
		if err := jsonscan.Flaw(value); err != nil {
			p.wrong = true
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	p.text(f, value)
	return nil
}

// scalar writes a value that has been scanned.
func (p *lineParser) scalar(f *jsonField, value []byte) error {
	switch f.kind {
	case jsonRaw:
		p.tag(f, protowire.BytesType)
		p.out = protowire.AppendBytes(p.out, value)
		return nil
	case jsonFlag:
		if value[0] != 't' && value[0] != 'f' {
			return p.wrongf(f, "true or false")
		}
		p.tag(f, protowire.VarintType)
		p.out = protowire.AppendVarint(p.out, protowire.EncodeBool(value[0] == 't'))
		return nil
	default:
		return p.number(f, value)
	}
}

// number writes a number that has been scanned.
func (p *lineParser) number(f *jsonField, value []byte) error {
	digits := string(bytes.Trim(value, `"`)) // protobuf's own JSON has large integers in quotes
	if f.kind == jsonDouble {
		d, err := strconv.ParseFloat(digits, 64)
		if err != nil {
			return p.wrongf(f, "a number")
		}
		p.tag(f, protowire.Fixed64Type)
		p.out = protowire.AppendFixed64(p.out, math.Float64bits(d))
		return nil
	}
	n, err := integer(digits, f.kind == jsonUint)
	if err != nil {
		return p.wrongf(f, map[jsonKind]string{jsonUint: "a number from 0 without decimals", jsonInt: "a number without decimals"}[f.kind])
	}
	p.tag(f, protowire.VarintType)
	p.out = protowire.AppendVarint(p.out, n)
	return nil
}

// integer also takes an integer in the form of another number, such as 1e3 or 2.0.
func integer(digits string, unsigned bool) (uint64, error) {
	if n, err := strconv.ParseUint(digits, 10, 64); err == nil && (unsigned || n <= math.MaxInt64) {
		return n, nil
	}
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil && !unsigned {
		return uint64(n), nil //nolint:gosec // as protobuf has it
	}
	d, err := strconv.ParseFloat(digits, 64)
	const exact = 1 << 53
	if err != nil || d != math.Trunc(d) || math.Abs(d) > exact || unsigned && d < 0 {
		return 0, strconv.ErrRange
	}
	return uint64(int64(d)), nil //nolint:gosec // checked
}

func (p *lineParser) tag(f *jsonField, typ protowire.Type) {
	p.out = protowire.AppendTag(p.out, f.number, typ)
}

// text writes a string.
func (p *lineParser) text(f *jsonField, quoted []byte) {
	p.tag(f, protowire.BytesType)
	if bytes.IndexByte(quoted, '\\') < 0 {
		p.out = protowire.AppendBytes(p.out, quoted[1:len(quoted)-1])
	} else {
		p.out = protowire.AppendString(p.out, jsonscan.Unquote(quoted))
	}
}

// close puts the length in front of what was written since mark.
func (p *lineParser) close(mark int) {
	size := len(p.out) - mark
	head := protowire.SizeVarint(uint64(size)) //nolint:gosec // positive
	p.out = append(p.out, make([]byte, head)...)
	copy(p.out[mark+head:], p.out[mark:mark+size])
	protowire.AppendVarint(p.out[:mark], uint64(size)) //nolint:gosec // positive
}

// HostFrameOf translates a host's line into the bytes of the frame. It is for tests that speak frame by frame.
func HostFrameOf(line []byte) ([]byte, error) {
	data, _, _, err := frameForms().host.parseLine(line)
	return data, err
}

// PluginLineOf translates a plugin's frame into a line without its end. It is for tests that speak frame by frame.
func PluginLineOf(frame []byte) ([]byte, error) { return frameForms().plugin.appendJSON(nil, frame) }
