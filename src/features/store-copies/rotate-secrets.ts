import type { App } from '../../app.js';
import { prependMasterKey } from '../../platform/secrets/master-key.js';
import { SEALED_OUTBOX } from '../../platform/mail-provider/outbox.js';
import { forgetOlderKeys, settleSealingKeys } from '../../platform/secrets/sealing-keys.js';
import { resealAll, type SealedPlace } from '../../platform/secrets/reseal.js';
import { SEALED_BUCKET_SECRETS } from '../files/bucket/project-bucket.js';
import { SEALED_HOOKS } from '../hooks/hook.js';
import { SEALED_SCHEDULES } from '../hooks/schedule.js';
import { SEALED_QUEUED_MAILS } from '../mail/mail-log.js';
import { SEALED_MAIL_SETTINGS } from '../mail/project-mail.js';
import { SEALED_TOKEN_SECRETS } from '../projects/token-secret.js';
import { SEALED_TOTP } from '../users/factors/factors.js';
import { SEALED_SOCIAL_SECRETS } from '../users/social/social-provider.js';
import { SEALED_WEBHOOK_SECRETS } from '../webhooks/webhook-store.js';

/** The places that hold sealed texts for long. */
export const SEALED_PLACES: readonly SealedPlace[] = [
  SEALED_TOKEN_SECRETS,
  SEALED_MAIL_SETTINGS,
  SEALED_BUCKET_SECRETS,
  SEALED_WEBHOOK_SECRETS,
  SEALED_HOOKS,
  SEALED_SCHEDULES,
  SEALED_SOCIAL_SECRETS,
  SEALED_TOTP,
  SEALED_QUEUED_MAILS,
  SEALED_OUTBOX,
];

export interface RotatedSecrets {
  /** False when the master keys come from a setting: its new first key is what everything is sealed with. */
  newKey: boolean;
  resealed: number;
}

/**
 * Makes a new master key (where the service keeps its own) and seals everything stored with it. Running processes
 * notice by themselves; the old key still opens what they seal until then.
 */
export async function rotateSecrets(app: App): Promise<RotatedSecrets> {
  const newKey = app.config.secretKey === null;
  if (newKey) {
    prependMasterKey(app.config.dataDir);
    app.secrets.reload();
  }
  await settleSealingKeys(app, app.clock.now());
  const resealed = await resealAll(app, SEALED_PLACES);
  await forgetOlderKeys(app);
  return { newKey, resealed };
}
