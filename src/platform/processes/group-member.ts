import cluster from 'node:cluster';
import { ANSWER_MS, HEARTBEAT_MS, react, type FromHost, type FromMember, type Reactions } from './group-host.js';

/** The view that one of the processes has of the others. */
export interface ProcessGroup {
  /** Has the process that started this one do what it was given for this word; fails after a second. */
  ask<T>(what: string, input: unknown): Promise<T>;
  /** The same without an answer. */
  tell(what: string, input: unknown): void;
  /** Sends to all others. */
  signal(text: string): void;
  onSignal(listener: (text: string) => void): void;
  /**
   * The results of what `onGather` was given for the topic, in each process, this one included; those that do not
   * answer within a second are left out.
   */
  collect(topic: ReportTopic): Promise<unknown[]>;
  onCollect(topic: ReportTopic, contribute: () => Promise<unknown>): void;
  /** Resolves when all of them have come here, at the latest after two seconds. Used once, when they stop. */
  waitForAll(): Promise<void>;
}

/** Topics on which processes report: for Prometheus, for figures over time, for the state of the service. */
export type ReportTopic = 'metrics' | 'series' | 'status';

const COLLECT_MS = 2 * ANSWER_MS;
const BARRIER_MS = 2_000;

interface Asked {
  resolve(answer: unknown): void;
  reject(error: Error): void;
  timer: NodeJS.Timeout;
}

/** The group of processes that this one belongs to; null when it was not started as one of several. */
export function joinProcessGroup(): ProcessGroup | null {
  if (!cluster.isWorker) return null;
  const asked = new Map<number, Asked>();
  const listeners: ((text: string) => void)[] = [];
  const contributions = new Map<string, () => Promise<unknown>>();
  let lastId = 0;
  let proceed: () => void = () => undefined;

  // When the supervisor is gone this process is about to end too.
  const send = (message: FromMember): void => void process.send?.(message, undefined, undefined, () => undefined);
  const ask = <T>(message: (id: number) => FromMember, limitMs: number): Promise<T> =>
    new Promise((resolve, reject) => {
      const id = ++lastId;
      const timer = setTimeout(() => {
        asked.delete(id);
        reject(new Error('the process that supervises this one does not answer'));
      }, limitMs);
      asked.set(id, { resolve: (answer) => resolve(answer as T), reject, timer });
      send(message(id));
    });

  const reactions: Reactions<FromHost> = {
    answer({ id, value, failed }) {
      const waiting = asked.get(id);
      if (!waiting) return;
      asked.delete(id);
      clearTimeout(waiting.timer);
      if (failed) waiting.reject(new Error('the process that supervises this one could not do it'));
      else waiting.resolve(value);
    },
    signal({ text }) {
      for (const listener of listeners) listener(text);
    },
    contribute({ round, topic }) {
      void Promise.resolve(contributions.get(topic)?.() ?? null)
        .catch(() => null)
        .then((part) => send({ bsvc: 'gathered', round, part }));
    },
    proceed: () => proceed(),
  };
  process.on('message', (message) => react(reactions, message));

  send({ bsvc: 'heartbeat' });
  setInterval(() => send({ bsvc: 'heartbeat' }), HEARTBEAT_MS).unref();

  return {
    ask: (what, input) => ask((id) => ({ bsvc: 'ask', id, what, input }), ANSWER_MS),
    tell: (what, input) => send({ bsvc: 'tell', what, input }),
    signal: (text) => send({ bsvc: 'signal', text }),
    onSignal: (listener) => void listeners.push(listener),
    collect: (topic) => ask((id) => ({ bsvc: 'gather', id, topic }), COLLECT_MS),
    onCollect: (topic, give) => void contributions.set(topic, give),
    async waitForAll() {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        proceed = resolve;
        timer = setTimeout(resolve, BARRIER_MS);
        send({ bsvc: 'arrived' });
      });
      clearTimeout(timer);
    },
  };
}
