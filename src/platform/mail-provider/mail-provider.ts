/** One message, ready to leave: addresses checked, subject on one line. */
export interface OutgoingMail {
  from: string;
  to: string[];
  subject: string;
  html?: string;
  text?: string;
  replyTo?: string[];
}

/**
 * The outcome of handing a message over. `refused` is final. `later` and `unknown` are worth another try with the same
 * idempotency key: nothing was sent, or the outcome is unknown. `partial` names the recipients that the server refused
 * while it took the others, with its words; `isKept` says that the message goes no further.
 */
export type SendOutcome =
  | { outcome: 'accepted'; id: string; partial?: string; isKept?: true }
  | { outcome: 'refused'; reason: string }
  | { outcome: 'later'; reason: string; retryAfterMs: number | null }
  | { outcome: 'unknown'; reason: string };

/** A way for mail to leave the house. Every implementation passes one shared suite. */
export interface MailProvider {
  readonly name: 'resend' | 'smtp' | 'outbox';
  /**
   * Hands one message over. Never throws; the same `idempotencyKey` never makes two messages where the provider can
   * help it.
   */
  send(mail: OutgoingMail, idempotencyKey: string): Promise<SendOutcome>;
  /**
   * As `send`, for up to 100 messages by one call of `limitMs` at most; the outcomes are in their order. Absent where
   * the provider takes messages one by one.
   */
  sendBatch?(mails: readonly OutgoingMail[], idempotencyKey: string, limitMs: number): Promise<SendOutcome[]>;
  /** The provider's record of a message it accepted, or null when it keeps no such record. */
  findStatus(id: string): Promise<{ lastEvent: string; raw: unknown } | null>;
}
