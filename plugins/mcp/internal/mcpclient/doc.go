// Package mcpclient keeps connections to servers of the Model Context Protocol, and holds what they say to bounds.
//
// [Start] connects to one server, a program or a URL, and keeps it: a server that ends is started again, ever later.
// [Server.Listing] is what it offers now, checked; [Server.Call] makes one call. A server is hostile: the size of its
// messages, the number and size of its tools and results, and the time of each step are bounded, what is no message is
// skipped, and each kind of what was wrong is one [Problem].
//
// It knows neither plugins nor policies: which tools are granted and which were accepted is for package plugins/mcp.
//
// Stability: internal.
package mcpclient
