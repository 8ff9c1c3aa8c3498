// Package oracle holds tests that compare this repository's code with independent implementations. It is a module of
// its own, so that what it compares with is not a dependency of the product.
//
// Stability: internal.
package oracle
