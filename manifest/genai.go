package manifest

// GenAIProvider is the provider as OpenTelemetry's conventions name it in gen_ai.provider.name: one of their words where
// they have one.
func (c *Cache) GenAIProvider() string {
	if c.Provider == "gemini" {
		return "gcp.gemini"
	}
	return c.Provider
}
