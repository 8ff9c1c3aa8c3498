// Package pluginpb is the code that protoc makes of plugin.proto: run make
// generate after a change of the contract, and commit what it writes.
//
// Only package wire imports it, for the service's description and for tests.
// Messages of the product are written and read by package wire itself.
package pluginpb
