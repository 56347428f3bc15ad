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
