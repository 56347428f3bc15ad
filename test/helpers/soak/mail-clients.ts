import { complete, think, type SoakCaller } from './caller.js';
import type { Random } from '../random.js';

export interface MailBooks {
  /** Ids of mails that were answered as queued. */
  queued: Set<string>;
  /** Ids that the provider gave to items of answered batches. */
  batched: Set<string>;
}

/**
 * Sends mails one by one and in batches; some to an address that the provider refuses, which has to give their slots
 * back.
 */
export async function runMailClient(caller: SoakCaller, random: Random, books: MailBooks): Promise<void> {
  for (let made = 0; !caller.over(); made++) {
    const to = (): string => (random.chance(0.15) ? 'refused@example.test' : `reader${made}@example.test`);
    if (random.chance(0.8)) {
      const body = { to: to(), subject: `mail ${made}`, text: 'hello' };
      const reply = await caller.send('mail', 'POST', '/api/mail/send', { body, allowed: [200, 429] });
      if (complete(reply, 200)) books.queued.add((reply.body.data as { id: string }).id);
    } else {
      const body = Array.from({ length: 1 + random.below(5) }, () => ({
        to: to(),
        subject: `batch ${made}`,
        text: 'hello',
      }));
      const reply = await caller.send('mail-batch', 'POST', '/api/mail/send-batch', { body, allowed: [200, 429] });
      if (complete(reply, 200)) {
        for (const item of reply.body.data as { id?: string }[]) if (item.id) books.batched.add(item.id);
      }
    }
    await think(random, 200);
  }
}
