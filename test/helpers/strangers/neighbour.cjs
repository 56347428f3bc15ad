/*
 * An honest user of another project: lists, counts and aggregates a small collection again and again, in a thread of
 * its own, so that what the attackers do keeps it from nothing. Posts when a read begins, and its status, milliseconds
 * and the processor time that the service spent meanwhile, which other work of the machine does not lengthen: not what
 * it spent while this thread waited for a processor to see the answer. Asked to pause, it says when it does.
 */
const { readFileSync } = require('node:fs');
const { availableParallelism } = require('node:os');
const { Agent, request } = require('node:http');
const { parentPort, workerData } = require('node:worker_threads');

const PAUSE_MS = 20;
const { url, key, pid } = workerData;
const agent = new Agent({ keepAlive: true });
const READS = [
  ['GET', '?limit=1&fields=_id'],
  ['GET', '?title_regex=h.{0,3}z%24&limit=1'],
  ['GET', '?count=true&limit=1&title_gt=a'],
  ['POST', '/aggregate', '{"pipeline":[{"$match":{"title":{"$gt":"a"}}},{"$count":"n"}]}'],
];
let read = 0;

function spentMs() {
  try {
    // After the name of the command, which may hold anything: state is field 3, user and system time are 14 and 15.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').pop().split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return 0;
  }
}

/** How long this thread has waited for a processor so far, times what others may have spent in that time. */
function missedMs() {
  const waited = readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[1];
  return (Number(waited) / 1e6) * availableParallelism();
}

let isPaused = false;
parentPort.on('message', (paused) => {
  isPaused = paused;
  if (!isReading) parentPort.postMessage({ paused });
  if (!isReading && !paused) readOnce();
});
let isReading = false;

function readOnce() {
  isReading = true;
  const from = `192.168.${(read >> 8) & 255}.${read & 255}`;
  const [method, path, body] = READS[read++ % READS.length];
  const begin = performance.now();
  const spent = spentMs();
  const missed = missedMs();
  parentPort.postMessage({ begun: true, spent });
  const done = (status) => {
    const cpuMs = Math.max(0, spentMs() - spent - (missedMs() - missed));
    parentPort.postMessage({ status, ms: performance.now() - begin, cpuMs });
    setTimeout(() => {
      isReading = false;
      if (isPaused) parentPort.postMessage({ paused: true });
      else readOnce();
    }, PAUSE_MS);
  };
  const headers = { 'x-api-key': key, 'x-forwarded-for': from };
  if (body) Object.assign(headers, { 'content-type': 'application/json', 'content-length': body.length });
  const outgoing = request(`${url}/api/data/posts${path}`, { method, agent, headers }, (reply) => {
    reply.resume();
    reply.on('end', () => done(reply.statusCode));
  });
  outgoing.on('error', () => done(0));
  outgoing.end(body);
}
readOnce();
