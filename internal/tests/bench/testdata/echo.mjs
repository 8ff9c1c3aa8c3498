const { context, definePlugin, serve } = await import(`${process.argv[2]}/dist/index.js`);

serve(definePlugin({
  name: "echo",
  version: "1.0.0",
  concurrency: 128,
  hooks: { echo: { kinds: ["prompt_context"], prePromptContext: (input) => context(input.user_text.value) } },
}));
