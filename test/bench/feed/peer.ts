import type { OpenCommand } from './stream-clients.js';

/** A service whose collection `items` has a rule: a document is its owner's. */
export interface Peer {
  url: string;
  pid: number;
  /** What opens streams of the open items of a user, by the user's number. */
  opens(user: number): Pick<OpenCommand, 'request' | 'ready' | 'change' | 'confirm'>;
  /** Makes an item of a user; its id. */
  create(user: number, state: string): Promise<string>;
  update(id: string, state: string): Promise<void>;
  /** For good. */
  remove(id: string): Promise<void>;
  /** Hears what a user is told, of the open items or of all; `since` is what an earlier one has left. */
  listen(user: number, query: { onlyOpen: boolean; since?: string }): Promise<Listener>;
}

/** A stream that collects what it is told. */
export interface Listener {
  text(): string;
  /** Ends it; where another one may go on, if there is such a thing. */
  close(): Promise<string | undefined>;
}

/** Sends a request that has to succeed; its body. */
export async function call<T>(
  url: string,
  method: string,
  headers: Readonly<Record<string, string>>,
  body?: object,
): Promise<T> {
  const response = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url} was answered ${response.status}: ${text}`);
  return (text === '' ? {} : JSON.parse(text)) as T;
}

/** Opens a stream and resolves when it has said `ready`. */
export async function collect(
  url: string,
  headers: Readonly<Record<string, string>>,
  ready: string,
): Promise<{ text(): string; close(): Promise<void> }> {
  const end = new AbortController();
  const response = await fetch(url, { headers: { accept: 'text/event-stream', ...headers }, signal: end.signal });
  if (!response.ok || !response.body) throw new Error(`${url} was answered ${response.status}`);
  let text = '';
  let isReady: () => void = () => undefined;
  const said = new Promise<void>((resolve) => (isReady = resolve));
  const read = async (): Promise<void> => {
    for await (const bytes of response.body!.pipeThrough(new TextDecoderStream())) {
      text += bytes;
      if (text.includes(ready)) isReady();
    }
  };
  const reading = read().catch(() => undefined);
  await said;
  return {
    text: () => text,
    async close() {
      end.abort();
      await reading;
    },
  };
}
