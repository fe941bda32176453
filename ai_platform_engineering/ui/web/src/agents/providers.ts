// The settings that each model provider needs. docs/configuration.md describes them.

export const PROVIDERS: Readonly<Record<string, readonly string[]>> = {
  openai: ["OPENAI_API_KEY", "OPENAI_MODEL_NAME"],
  "azure-openai": ["AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_DEPLOYMENT"],
  "anthropic-claude": ["ANTHROPIC_API_KEY", "ANTHROPIC_MODEL_NAME"],
  "aws-bedrock": ["AWS_REGION", "AWS_BEDROCK_MODEL_ID"],
  "google-gemini": ["GOOGLE_API_KEY", "GOOGLE_GEMINI_MODEL_NAME"],
  "gcp-vertexai": ["GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "VERTEXAI_MODEL_NAME"],
  groq: ["GROQ_API_KEY", "GROQ_MODEL_NAME"],
  ollama: ["OLLAMA_BASE_URL", "OLLAMA_MODEL_NAME"],
  litellm: ["LITELLM_MODEL_NAME", "LITELLM_API_BASE", "LITELLM_API_KEY"],
};

/** Providers that need one more package: the name of the extra that `make setup` installs. */
export const EXTRAS: Readonly<Record<string, string>> = {
  "aws-bedrock": "aws",
  groq: "groq",
  ollama: "ollama",
  litellm: "litellm",
};
