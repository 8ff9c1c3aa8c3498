package python

import "strings"

// comments returns the comments of a .proto file, by MESSAGE and by MESSAGE.FIELD, each without line breaks.
func comments(proto string) map[string]string {
	docs := map[string]string{}
	message, depth := "", 0
	var text []string
	for line := range strings.Lines(proto) {
		line = strings.TrimSpace(line)
		if comment, ok := strings.CutPrefix(line, "//"); ok {
			text = append(text, strings.TrimSpace(comment))
			continue
		}
		doc := strings.Join(text, " ")
		text = nil
		if name, ok := strings.CutPrefix(line, "message "); ok {
			message, _, _ = strings.Cut(name, " ")
			docs[message] = doc
		} else if left, _, ok := strings.Cut(line, " = "); ok && depth > 0 && doc != "" {
			docs[message+"."+left[strings.LastIndex(left, " ")+1:]] = doc
		}
		depth += strings.Count(line, "{") - strings.Count(line, "}")
	}
	return docs
}
