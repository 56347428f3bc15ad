import type { Transporter } from 'nodemailer';
import type { MailProvider, SendOutcome } from './mail-provider.js';

const PERMANENT = 500;

/** A mail server by its address, for example `smtps://user:secret@mail.example.com`. SMTP has no idempotency, so a repeated message carries the same Message-ID. */
export function openSmtp(url: string): MailProvider {
  let opening: Promise<Transporter> | null = null;
  const transport = (): Promise<Transporter> =>
    (opening ??= import('nodemailer').then(({ createTransport }) =>
      createTransport({
        url,
        connectionTimeout: 10_000,
        greetingTimeout: 10_000,
        socketTimeout: 20_000,
        disableFileAccess: true,
        disableUrlAccess: true,
      } as never),
    ));
  return {
    name: 'smtp',
    async send(mail, idempotencyKey) {
      const domain = /@([A-Za-z0-9.-]+)>?$/.exec(mail.from)?.[1] ?? 'localhost';
      try {
        const sent = (await (
          await transport()
        ).sendMail({
          from: mail.from,
          to: mail.to,
          subject: mail.subject,
          html: mail.html,
          text: mail.text,
          replyTo: mail.replyTo,
          messageId: `<${idempotencyKey}@${domain}>`,
        })) as { messageId: string };
        return { outcome: 'accepted', id: sent.messageId.replace(/^<|@.*$/g, '') };
      } catch (error) {
        return readSmtpFailure(error as Error & { responseCode?: number; code?: string; command?: string });
      }
    },
    findStatus: () => Promise.resolve(null),
  };
}

function readSmtpFailure(error: Error & { responseCode?: number; code?: string; command?: string }): SendOutcome {
  const reason = error.message.slice(0, 500);
  if ((error.responseCode ?? 0) >= PERMANENT || error.code === 'EENVELOPE') return { outcome: 'refused', reason };
  // Once the body was on its way, a lost connection leaves open whether the server took it.
  if (error.responseCode === undefined && error.command === 'DATA') return { outcome: 'unknown', reason };
  return { outcome: 'later', reason, retryAfterMs: null };
}
