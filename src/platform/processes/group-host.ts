import type { Worker } from 'node:cluster';

/** Messages of one of the processes of a `serve --processes` to the one that started them. */
export type FromMember =
  | { bsvc: 'ask'; id: number; what: string; input: unknown }
  | { bsvc: 'tell'; what: string; input: unknown }
  | { bsvc: 'signal'; text: string }
  | { bsvc: 'gather'; id: number; topic: string }
  | { bsvc: 'gathered'; round: number; part: unknown }
  | { bsvc: 'arrived' }
  | { bsvc: 'heartbeat' };

export type FromHost =
  | { bsvc: 'answer'; id: number; value: unknown; failed?: true }
  | { bsvc: 'signal'; text: string }
  | { bsvc: 'contribute'; round: number; topic: string }
  | { bsvc: 'proceed' };

/** What to do with a message, by its kind. */
export type Reactions<Message extends { bsvc: string }> = {
  [Kind in Message['bsvc']]: (message: Message & { bsvc: Kind }) => void;
};

/** Does what the kind of the message asks for. Other messages pass between the processes too. */
export function react<Message extends { bsvc: string }>(reactions: Reactions<Message>, message: unknown): void {
  const { bsvc } = message as Partial<Message>;
  if (bsvc === undefined || !Object.hasOwn(reactions, bsvc)) return;
  (reactions as Record<string, (message: unknown) => void>)[bsvc]!(message);
}

/** Milliseconds in which a process answers another. */
export const ANSWER_MS = 1_000;
export const HEARTBEAT_MS = 2_000;

/** A process that has sent nothing for this long is stuck: none of its work holds the event loop as long as that. */
const STUCK_MS = 30_000;

/** What the processes may ask for, by the word that they ask with. */
export type GroupAnswers = Readonly<Record<string, (input: unknown) => unknown>>;

interface ProcessGroupHost {
  /** Answers what this process asks and passes on what it sends, until it ends. */
  serve(process: Worker): void;
}

interface Round {
  waitingFor: Set<Worker>;
  parts: unknown[];
  finish(): void;
}

/**
 * The supervisor's side: does what the processes ask for, stands between them, and reports one that is stuck. That
 * happens: a process that waits for a lock whose holder is killed (kill -9) in the wrong instant is never woken.
 */
export function openProcessGroupHost(
  answers: GroupAnswers,
  onStuck: (process: Worker) => void,
  { stuckMs = STUCK_MS, lookMs = HEARTBEAT_MS } = {},
): ProcessGroupHost {
  const processes = new Set<Worker>();
  const arrived = new Set<Worker>();
  const heardAt = new Map<Worker, number>();
  const rounds = new Map<number, Round>();
  let lastRound = 0;

  const send = (to: Worker, message: FromHost): void => {
    // One that is just ending takes no messages any more.
    if (to.isConnected()) to.send(message, () => undefined);
  };
  const run = (what: string, input: unknown): Promise<unknown> => Promise.resolve().then(() => answers[what]!(input));
  const proceedWhenAllArrived = (): void => {
    if (arrived.size === 0 || arrived.size < processes.size) return;
    for (const each of arrived) send(each, { bsvc: 'proceed' });
    arrived.clear();
  };
  const gather = (from: Worker, id: number, topic: string): void => {
    const round = ++lastRound;
    const parts: unknown[] = [];
    const finish = (): void => {
      if (!rounds.delete(round)) return;
      clearTimeout(timer);
      send(from, { bsvc: 'answer', id, value: parts });
    };
    const timer = setTimeout(finish, ANSWER_MS);
    rounds.set(round, { waitingFor: new Set(processes), parts, finish });
    for (const each of processes) send(each, { bsvc: 'contribute', round, topic });
  };
  const reactionsTo = (from: Worker): Reactions<FromMember> => ({
    ask({ id, what, input }) {
      run(what, input).then(
        (value) => send(from, { bsvc: 'answer', id, value }),
        () => send(from, { bsvc: 'answer', id, value: null, failed: true }),
      );
    },
    tell: ({ what, input }) => void run(what, input).catch(() => undefined),
    signal(message) {
      for (const other of processes) if (other !== from) send(other, message);
    },
    gather: ({ id, topic }) => gather(from, id, topic),
    gathered({ round, part }) {
      const open = rounds.get(round);
      if (!open?.waitingFor.delete(from)) return;
      if (part !== null) open.parts.push(part);
      if (open.waitingFor.size === 0) open.finish();
    },
    arrived() {
      arrived.add(from);
      proceedWhenAllArrived();
    },
    heartbeat: () => undefined,
  });

  watch(heardAt, onStuck, stuckMs, lookMs);
  return {
    serve(started) {
      processes.add(started);
      const reactions = reactionsTo(started);
      started.on('message', (message) => {
        heardAt.set(started, performance.now());
        react(reactions, message);
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

/** Reports each process that has not been heard of for `stuckMs`, once until it is heard of again. */
function watch(
  heardAt: Map<Worker, number>,
  onStuck: (process: Worker) => void,
  stuckMs: number,
  lookMs: number,
): void {
  let lookedAt = performance.now();
  const look = (): void => {
    const now = performance.now();
    // After a pause of this process itself, what the others have sent in between has yet to be read.
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
}
