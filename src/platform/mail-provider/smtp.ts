import type { Transporter } from 'nodemailer';
import type { MailProvider, SendOutcome } from './mail-provider.js';

const PERMANENT = 500;
const MAX_REASON_CHARACTERS = 500;

/**
 * A mail server by its address, for example `smtps://user:secret@mail.example.com`. SMTP has no idempotency, so a
 * repeated message carries the same Message-ID.
 */
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
      }),
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
        })) as SentBySmtp;
        return { outcome: 'accepted', id: sent.messageId.replace(/^<|@.*$/g, ''), ...readPartial(sent) };
      } catch (error) {
        return readSmtpFailure(error as SmtpError);
      }
    },
    findStatus: () => Promise.resolve(null),
  };
}

interface SentBySmtp {
  messageId: string;
  rejected?: string[];
  rejectedErrors?: (Error & { response?: string; recipient?: string })[];
}

/** Of several recipients the server may refuse some and take the mail for the others. */
function readPartial({ rejected = [], rejectedErrors = [] }: SentBySmtp): { partial?: string } {
  if (rejected.length === 0) return {};
  const wordsFor = (address: string): string => {
    const refusal = rejectedErrors.find(({ recipient }) => recipient === address);
    return refusal?.response ? `${address} (${refusal.response})` : address;
  };
  return { partial: `refused for ${rejected.map(wordsFor).join(', ')}`.slice(0, MAX_REASON_CHARACTERS) };
}

type SmtpError = Error & { responseCode?: number; code?: string; syscall?: string };

/** Before any of these the message itself cannot have been sent. */
const NOT_CONNECTED_CODES = new Set(['EDNS', 'EAUTH', 'ETLS']);
const NOT_CONNECTED_CALLS = new Set(['connect', 'getaddrinfo']);

function readSmtpFailure({ message, responseCode, code = '', syscall = '' }: SmtpError): SendOutcome {
  const reason = message.slice(0, MAX_REASON_CHARACTERS);
  if (responseCode !== undefined) {
    return responseCode >= PERMANENT
      ? { outcome: 'refused', reason }
      : { outcome: 'later', reason, retryAfterMs: null };
  }
  // An envelope that is refused without the server's word is one that no server would take.
  if (code === 'EENVELOPE') return { outcome: 'refused', reason };
  if (NOT_CONNECTED_CODES.has(code) || NOT_CONNECTED_CALLS.has(syscall)) {
    return { outcome: 'later', reason, retryAfterMs: null };
  }
  // A connection that was lost leaves open whether the server had the whole message by then.
  return { outcome: 'unknown', reason };
}
