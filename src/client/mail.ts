import type { Account } from './auth/account.js';

/** A mail by a template, or with subject and content. */
export interface Mail {
  to: string | readonly string[];
  replyTo?: string | readonly string[];
  subject?: string;
  html?: string;
  text?: string;
  templateId?: string;
  templateName?: string;
  /** Values for `{{name}}`. */
  variables?: Record<string, unknown>;
}

/** A mail that waits to be sent. */
export interface QueuedMail {
  id: string;
  provider: 'byok' | 'default';
  monthlyUsage: number;
  monthlyLimit: number | null;
}

/** Mail of the project: needs the secret key, and so a server. */
export interface Mailer {
  /** Queues one mail; repeated when the answer got lost, which sends it once all the same. */
  send(mail: Mail): Promise<QueuedMail>;
}

export function openMailer({ connection }: Pick<Account<unknown>, 'connection'>): Mailer {
  return {
    async send(mail) {
      const call = { method: 'POST', path: '/mail/send', body: mail, repeat: 'key' } as const;
      return (await connection.send<{ data: QueuedMail }>(call)).data;
    },
  };
}
