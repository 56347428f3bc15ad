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

process.on('message', ({ url, connections, seconds, requests }: Shots) => {
  // Its own figures are whole milliseconds, which says little about answers that take one.
  const times: number[] = [];
  // The first of each connection is timed from before all of them were made ready, which takes seconds for hundreds.
  const begun = new Set<unknown>();
  const running = autocannon({ url, connections, duration: seconds, requests }, (_error, result) => {
    times.sort((a, b) => a - b);
    const seen: Seen = {
      requests: result.requests.total,
      failed: result.non2xx + result.errors,
      p50: times[Math.floor(times.length * 0.5)]!,
      p99: times[Math.floor(times.length * 0.99)]!,
    };
    process.send!(seen);
  });
  running.on('response', (client, _status, _bytes, time) => {
    if (begun.has(client)) times.push(time);
    else begun.add(client);
  });
});
