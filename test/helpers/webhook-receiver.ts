import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { listen } from './listen.js';

export interface ReceivedWebhook {
  headers: IncomingHttpHeaders;
  body: string;
  event: { id: string; event: string; documentId: string; data: Record<string, unknown> } & Record<string, unknown>;
}

export interface WebhookReceiver {
  url: string;
  received: ReceivedWebhook[];
  /** How the next requests are answered; 200 unless set. */
  answer: (response: ServerResponse, request: ReceivedWebhook) => void;
  /** Received events of one document, in the order of arrival, as `action` texts. */
  actionsOf(documentId: string): string[];
  close(): Promise<void>;
}

/** A real HTTP server that keeps what it is sent; at any free port unless one is given. */
export async function openWebhookReceiver(port = 0): Promise<WebhookReceiver> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      const received = { headers: request.headers, body, event: JSON.parse(body) as ReceivedWebhook['event'] };
      receiver.received.push(received);
      receiver.answer(response, received);
    });
    request.on('error', () => undefined);
  });
  const { url, close } = await listen(server, port);
  const receiver: WebhookReceiver = {
    url: `${url}/hook`,
    received: [],
    answer: (response) => void response.writeHead(200).end('ok'),
    actionsOf: (documentId) =>
      receiver.received
        .filter(({ event }) => event.documentId === documentId)
        .map(({ event }) => event.event.split('.')[1]!),
    close,
  };
  return receiver;
}
