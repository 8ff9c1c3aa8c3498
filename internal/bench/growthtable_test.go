package bench

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	growthBefore = flag.String("growth.before", "", "what BenchmarkGrowth has printed before a change, any number of times")
	growthAfter  = flag.String("growth.after", "", "what it has printed after the change")
	growthSVG    = flag.String("growth.svg", "", "the file for the plot")
)

// growthCurve is the median processor time of one thing by how many there are, in nanoseconds.
type growthCurve map[int]float64

// TestGrowthTable writes a table and a plot of what BenchmarkGrowth and BenchmarkGrowthOfTurns have printed.
func TestGrowthTable(t *testing.T) {
	if *growthAfter == "" {
		t.Skip("-growth.after names no file")
	}
	names, after := readGrowth(t, *growthAfter)
	_, before := readGrowth(t, *growthBefore)
	fmt.Println("| more of | from, to | before: time, and power of the number | after |\n|---|---|---|---|")
	for _, name := range names {
		sizes := slices.Sorted(maps.Keys(after[name]))
		fmt.Printf("| %s | %d, %d | %s | %s |\n", name, sizes[0], sizes[len(sizes)-1], before[name], after[name])
	}
	if *growthSVG == "" {
		return
	}
	var svg strings.Builder
	svg.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 400" font-family="sans-serif" font-size="11">` + "\n")
	plotGrowth(&svg, 40, "before", names, before)
	plotGrowth(&svg, 460, "after", names, after)
	svg.WriteString("</svg>\n")
	if err := os.WriteFile(*growthSVG, []byte(svg.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// readGrowth returns the names in order, and the curve of each.
func readGrowth(t *testing.T, file string) (names []string, curves map[string]growthCurve) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[int][]float64{}
	for _, m := range regexp.MustCompile(`(?m)^BenchmarkGrowth\w*/(.+)/n=(\d+)\b.*\s([\d.]+) cpu-ns/op`).FindAllStringSubmatch(string(raw), -1) {
		name := strings.ReplaceAll(m[1], "_", " ")
		n, _ := strconv.Atoi(m[2])
		ns, _ := strconv.ParseFloat(m[3], 64)
		if all[name] == nil {
			all[name], names = map[int][]float64{}, append(names, name)
		}
		all[name][n] = append(all[name][n], ns)
	}
	curves = map[string]growthCurve{}
	for name, sizes := range all {
		curves[name] = growthCurve{}
		for n, times := range sizes {
			slices.Sort(times)
			curves[name][n] = times[len(times)/2]
		}
	}
	return names, curves
}

// String is the first and the last time, and the power of n with which the time grows at the end.
func (c growthCurve) String() string {
	if len(c) < 2 {
		return "–"
	}
	sizes := slices.Sorted(maps.Keys(c))
	first, last := sizes[0], sizes[len(sizes)-1]
	previous := sizes[len(sizes)-2]
	power := math.Log(c[last]/c[previous]) / math.Log(float64(last)/float64(previous))
	return fmt.Sprintf("%s to %s, %.1f", rounded(c[first]), rounded(c[last]), math.Round(10*power)/10+0)
}

func rounded(ns float64) string {
	d := time.Duration(ns)
	unit := time.Duration(1)
	for d/unit >= 100 {
		unit *= 10
	}
	return regexp.MustCompile(`[a-zµ]+`).ReplaceAllString(d.Round(unit).String(), " $0")
}

// plotGrowth draws how many times as long as one something takes, by how many there are: both on logarithmic
// scales of 50 units a power of ten. What grows
// with the number follows the grey line; what grows faster is named.
func plotGrowth(svg *strings.Builder, left int, title string, names []string, curves map[string]growthCurve) {
	const bottom, decade, width, height = 350, 50, 350, 300
	x := func(n float64) float64 { return float64(left) + decade*math.Log10(n) }
	y := func(ratio float64) float64 { return bottom - decade*math.Log10(max(ratio, 0.5)) }
	fmt.Fprintf(svg, `<text x="%d" y="20" font-size="14">%s</text>`+"\n", left, title)
	fmt.Fprintf(svg, `<path d="M%d %dV%dH%d" fill="none" stroke="black"/>`+"\n", left, bottom-height, bottom, left+width)
	fmt.Fprintf(svg, `<path d="M%d %dl%d %d" stroke="silver" stroke-width="4"/>`+"\n", left, bottom, height, -height)
	for power := range 7 {
		at := float64(power * decade)
		fmt.Fprintf(svg, `<text x="%g" y="%d">10<tspan dy="-4" font-size="8">%d</tspan></text>`+"\n", float64(left)+at-6, bottom+16, power)
		fmt.Fprintf(svg, `<text x="%d" y="%g">10<tspan dy="-4" font-size="8">%d</tspan></text>`+"\n", left-24, bottom-at+4, power)
	}
	for i, name := range names {
		curve := curves[name]
		if len(curve) == 0 {
			continue
		}
		sizes := slices.Sorted(maps.Keys(curve))
		var points []string
		for _, n := range sizes {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(float64(n)), y(curve[n]/curve[sizes[0]])))
		}
		last := sizes[len(sizes)-1]
		if ratio := curve[last] / curve[sizes[0]]; ratio > 2*float64(last)/float64(sizes[0]) {
			fmt.Fprintf(svg, `<text x="%.1f" y="%.1f">%s</text>`+"\n", x(float64(last))+4, y(ratio)+4, name)
		}
		fmt.Fprintf(svg, `<polyline points="%s" fill="none" stroke="hsl(%d 70%% 40%%)"><title>%s</title></polyline>`+"\n", strings.Join(points, " "), i*360/len(names), name)
	}
}
