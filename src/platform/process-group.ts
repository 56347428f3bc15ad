import cluster, { type Worker } from 'node:cluster';
import type { Rate } from '../config/setting-readers.js';
import type { Grant, KnownWindow, RateCounter } from './rate-limit/rate-counter.js';

/** Messages between the processes of one `serve --processes`, by way of the one that started them. */
type FromProcess =
  | { bsvc: 'take'; id: number; key: string; want: number; rate: Rate }
  | { bsvc: 'giveBack'; key: string; uses: number; resetMs: number }
  | { bsvc: 'atLeast'; windows: readonly KnownWindow[] }
  | { bsvc: 'signal'; text: string }
  | { bsvc: 'gather'; id: number; topic: string }
  | { bsvc: 'gathered'; round: number; part: unknown }
  | { bsvc: 'arrived' }
  | { bsvc: 'beat' };

type FromPrimary =
  | { bsvc: 'granted'; id: number; grant: Grant | null }
  | { bsvc: 'signal'; text: string }
  | { bsvc: 'contribute'; round: number; topic: string }
  | { bsvc: 'parts'; id: number; parts: unknown[] }
  | { bsvc: 'proceed' };

/** The view that one of the processes has of the others. */
export interface ProcessGroup {
  /** Counts in the process that started this one. */
  counter: RateCounter;
  /** Sends to all others. */
  signal(text: string): void;
  onSignal(listener: (text: string) => void): void;
  /**
   * The results of what `onGather` was given for the topic, in each process, this one included; those that do not
   * answer within a second are left out.
   */
  gather(topic: GatherTopic): Promise<unknown[]>;
  onGather(topic: GatherTopic, contribute: () => Promise<unknown>): void;
  /** Resolves when all of them have come here, at the latest after two seconds. For the one time in which they stop. */
  meet(): Promise<void>;
}

/** Topics on which processes report: for Prometheus, for figures over time, for the state of the service. */
export type GatherTopic = 'metrics' | 'series' | 'status';

const ANSWER_MS = 1_000;
const GATHER_MS = 2 * ANSWER_MS;
const MEETING_MS = 2_000;
const BEAT_MS = 2_000;
/**
 * A process that has not said anything for so long is stuck: nothing that it does takes its turn of the event loop for
 * longer than a moment.
 */
const STUCK_MS = 30_000;

/** The siblings of this process; null when it was not started as one of several. */
export function joinProcessGroup(): ProcessGroup | null {
  if (!cluster.isWorker) return null;
  const asked = new Map<number, { resolve(answer: unknown): void; timer: NodeJS.Timeout }>();
  const listeners: ((text: string) => void)[] = [];
  const contributions = new Map<string, () => Promise<unknown>>();
  let lastId = 0;
  let proceed: () => void = () => undefined;

  // When the supervisor is gone this process is about to end too.
  const send = (message: FromProcess): void => void process.send?.(message, undefined, undefined, () => undefined);
  const ask = <T>(message: (id: number) => FromProcess, limitMs: number): Promise<T> =>
    new Promise((resolve, reject) => {
      const id = ++lastId;
      const timer = setTimeout(() => {
        asked.delete(id);
        reject(new Error('the process that supervises this one does not answer'));
      }, limitMs);
      asked.set(id, { resolve: (answer) => resolve(answer as T), timer });
      send(message(id));
    });
  const answer = (id: number, value: unknown): void => {
    const waiting = asked.get(id);
    if (!waiting) return;
    asked.delete(id);
    clearTimeout(waiting.timer);
    waiting.resolve(value);
  };

  process.on('message', (message: FromPrimary) => {
    if (message.bsvc === 'granted') {
      answer(message.id, message.grant);
    } else if (message.bsvc === 'parts') {
      answer(message.id, message.parts);
    } else if (message.bsvc === 'proceed') {
      proceed();
    } else if (message.bsvc === 'signal') {
      for (const listener of listeners) listener(message.text);
    } else if (message.bsvc === 'contribute') {
      void Promise.resolve(contributions.get(message.topic)?.() ?? null)
        .catch(() => null)
        .then((part) => send({ bsvc: 'gathered', round: message.round, part }));
    }
  });

  send({ bsvc: 'beat' });
  setInterval(() => send({ bsvc: 'beat' }), BEAT_MS).unref();

  return {
    counter: {
      async take(key, want, rate) {
        const grant = await ask<Grant | null>((id) => ({ bsvc: 'take', id, key, want, rate }), ANSWER_MS);
        if (!grant) throw new Error('the counter of the supervising process failed');
        return grant;
      },
      giveBack: (key, uses, resetMs) => send({ bsvc: 'giveBack', key, uses, resetMs }),
      atLeast: (windows) => send({ bsvc: 'atLeast', windows }),
      close: () => Promise.resolve(),
    },
    signal: (text) => send({ bsvc: 'signal', text }),
    onSignal: (listener) => void listeners.push(listener),
    gather: (topic) => ask<unknown[]>((id) => ({ bsvc: 'gather', id, topic }), GATHER_MS),
    onGather: (topic, give) => void contributions.set(topic, give),
    async meet() {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        proceed = resolve;
        timer = setTimeout(resolve, MEETING_MS);
        send({ bsvc: 'arrived' });
      });
      clearTimeout(timer);
    },
  };
}

export interface ProcessGroupHost {
  /** Answers what this process asks and passes on what it says, until it ends. */
  serve(process: Worker): void;
}

interface Round {
  waitingFor: Set<Worker>;
  parts: unknown[];
  finish(): void;
}

/**
 * The supervisor's side: counts for all, stands between them, and tells of one that is stuck. That happens: a process
 * that waits for a lock whose holder is killed (kill -9) in the wrong instant is never woken.
 */
export function openProcessGroupHost(
  counter: RateCounter,
  onStuck: (process: Worker) => void,
  { stuckMs = STUCK_MS, lookMs = BEAT_MS } = {},
): ProcessGroupHost {
  const processes = new Set<Worker>();
  const arrived = new Set<Worker>();
  const heardAt = new Map<Worker, number>();
  const rounds = new Map<number, Round>();
  let lastRound = 0;

  const tell = (to: Worker, message: FromPrimary): void => {
    // One that is just ending takes no messages any more.
    if (to.isConnected()) to.send(message, () => undefined);
  };
  const gather = (from: Worker, id: number, topic: string): void => {
    const round = ++lastRound;
    const parts: unknown[] = [];
    const finish = (): void => {
      if (!rounds.delete(round)) return;
      clearTimeout(timer);
      tell(from, { bsvc: 'parts', id, parts });
    };
    const timer = setTimeout(finish, ANSWER_MS);
    rounds.set(round, { waitingFor: new Set(processes), parts, finish });
    for (const each of processes) tell(each, { bsvc: 'contribute', round, topic });
  };
  const collect = (from: Worker, round: number, part: unknown): void => {
    const open = rounds.get(round);
    if (!open?.waitingFor.delete(from)) return;
    if (part !== null) open.parts.push(part);
    if (open.waitingFor.size === 0) open.finish();
  };
  const proceedWhenAllArrived = (): void => {
    if (arrived.size === 0 || arrived.size < processes.size) return;
    for (const each of arrived) tell(each, { bsvc: 'proceed' });
    arrived.clear();
  };
  const take = async (from: Worker, { id, key, want, rate }: FromProcess & { bsvc: 'take' }): Promise<void> => {
    const grant = await Promise.resolve(counter.take(key, want, rate)).catch(() => null);
    tell(from, { bsvc: 'granted', id, grant });
  };

  let lookedAt = performance.now();
  const look = (): void => {
    const now = performance.now();
    // After a pause of this process itself, what the others have said meanwhile has yet to be read.
    const wasAway = now - lookedAt > 2 * lookMs;
    lookedAt = now;
    if (wasAway) return;
    for (const [each, at] of heardAt) {
      if (now - at < stuckMs) continue;
      heardAt.delete(each);
      onStuck(each);
    }
  };
  setInterval(look, lookMs).unref();

  return {
    serve(started) {
      processes.add(started);
      started.on('message', (message: FromProcess) => {
        heardAt.set(started, performance.now());
        if (message.bsvc === 'take') {
          void take(started, message);
        } else if (message.bsvc === 'giveBack') {
          void counter.giveBack(message.key, message.uses, message.resetMs);
        } else if (message.bsvc === 'atLeast') {
          void counter.atLeast(message.windows);
        } else if (message.bsvc === 'gather') {
          gather(started, message.id, message.topic);
        } else if (message.bsvc === 'gathered') {
          collect(started, message.round, message.part);
        } else if (message.bsvc === 'arrived') {
          arrived.add(started);
          proceedWhenAllArrived();
        } else if (message.bsvc === 'signal') {
          for (const other of processes) if (other !== started) tell(other, message);
        }
      });
      started.once('exit', () => {
        processes.delete(started);
        arrived.delete(started);
        heardAt.delete(started);
        proceedWhenAllArrived();
        for (const round of rounds.values()) {
          round.waitingFor.delete(started);
          if (round.waitingFor.size === 0) round.finish();
        }
      });
    },
  };
}
