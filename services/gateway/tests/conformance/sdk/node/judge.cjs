// Runs one scenario with openai-node and prints what the SDK made of it as one line of JSON.
// Usage: node judge.cjs BASE_URL KEY stream|plain|models
const { OpenAI, APIError } = require("openai");

const [baseURL, apiKey, scenario] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0, timeout: 60_000 });
const request = { model: "m", messages: [{ role: "user", content: "hi" }] };

const scenarios = {
  async stream() {
    const result = { text: "", finish: null, chunks: 0 };
    for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
      result.chunks += 1;
      result.text += chunk.choices[0]?.delta?.content ?? "";
      result.finish = chunk.choices[0]?.finish_reason ?? result.finish;
    }
    return result;
  },
  async plain() {
    const reply = await client.chat.completions.create(request);
    return { text: reply.choices[0].message.content, finish: reply.choices[0].finish_reason };
  },
  async models() {
    const models = [];
    for await (const model of client.models.list()) models.push(model.id);
    return { models };
  },
};

scenarios[scenario]()
  .then((result) => result)
  .catch((error) => ({
    error: {
      class: error.constructor.name,
      api: error instanceof APIError,
      status: error.status ?? null,
      code: error.code ?? null,
      message: error.message,
    },
  }))
  .then((result) => console.log(JSON.stringify(result)));
