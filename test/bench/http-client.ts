import autocannon from 'autocannon';

/*
 * A client process of http.ts: it sends what it is told and tells what it saw. Several of them, since one alone is
 * slower than the server.
 */

export type Request = NonNullable<autocannon.Options['requests']>[number];

export interface Shots {
  url: string;
  connections: number;
  seconds: number;
  requests: Request[];
}

export interface Seen {
  requests: number;
  failed: number;
  p50: number;
  p99: number;
}

process.on('message', async ({ url, connections, seconds, requests }: Shots) => {
  const { latency, ...result } = await autocannon({ url, connections, duration: seconds, requests });
  const seen: Seen = {
    requests: result.requests.total,
    failed: result.non2xx + result.errors,
    p50: latency.p50,
    p99: latency.p99,
  };
  process.send!(seen);
});
