import { type Agent, request } from 'node:http';

/** Runs `work` at a steady rate, whether or not earlier runs have ended; the times that they took, in milliseconds. */
export async function atSteadyRate(
  { perSecond, seconds }: { perSecond: number; seconds: number },
  work: () => Promise<unknown>,
): Promise<number[]> {
  const latencies: number[] = [];
  const under: Promise<void>[] = [];
  const start = performance.now();
  for (let n = 0; n < perSecond * seconds; n++) {
    const due = start + (n * 1000) / perSecond;
    while (performance.now() < due) await new Promise((resolve) => setTimeout(resolve, 1));
    under.push(timed(work).then((ms) => void latencies.push(ms)));
  }
  await Promise.all(under);
  return latencies.sort((a, b) => a - b);
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** What is read of a reply of status 200. */
export function readReply(agent: Agent, url: string, headers: Record<string, string>, body?: object): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent, method: body ? 'POST' : 'GET', headers }, (reply) => {
      let text = '';
      reply.setEncoding('latin1').on('data', (part: string) => (text += part));
      reply.on('end', () => (reply.statusCode === 200 ? resolve(text) : reject(new Error(text))));
    });
    sent.on('error', reject);
    sent.end(body && JSON.stringify(body));
  });
}

/** The time below which a share of sorted ones lies. */
export function at(sorted: number[], share: number): string {
  return `${sorted[Math.floor((sorted.length - 1) * share)]!.toFixed(1)} ms`;
}
