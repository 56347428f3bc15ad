import type { App } from '../../app.js';
import { prependMasterKey } from '../../platform/secrets/master-key.js';
import { ENCRYPTED_OUTBOX } from '../../platform/mail-provider/outbox.js';
import { forgetOlderKeys, recordEncryptionKeys } from '../../platform/secrets/encryption-keys.js';
import { reencryptAll, type EncryptedPlace } from '../../platform/secrets/reencrypt.js';
import { ENCRYPTED_BUCKET_SECRETS } from '../files/bucket/project-bucket.js';
import { ENCRYPTED_HOOKS } from '../hooks/hook.js';
import { ENCRYPTED_SCHEDULES } from '../hooks/schedule.js';
import { ENCRYPTED_QUEUED_MAILS } from '../mail/mail-log.js';
import { ENCRYPTED_MAIL_SETTINGS } from '../mail/project-mail.js';
import { ENCRYPTED_TOKEN_SECRETS } from '../projects/token-secret.js';
import { ENCRYPTED_TOTP } from '../users/factors/factors.js';
import { ENCRYPTED_SOCIAL_SECRETS } from '../users/social/social-provider.js';
import { ENCRYPTED_WEBHOOK_SECRETS } from '../webhooks/webhook-store.js';

/** The places that hold encrypted texts for long. */
export const ENCRYPTED_PLACES: readonly EncryptedPlace[] = [
  ENCRYPTED_TOKEN_SECRETS,
  ENCRYPTED_MAIL_SETTINGS,
  ENCRYPTED_BUCKET_SECRETS,
  ENCRYPTED_WEBHOOK_SECRETS,
  ENCRYPTED_HOOKS,
  ENCRYPTED_SCHEDULES,
  ENCRYPTED_SOCIAL_SECRETS,
  ENCRYPTED_TOTP,
  ENCRYPTED_QUEUED_MAILS,
  ENCRYPTED_OUTBOX,
];

export interface RotatedSecrets {
  /** False when the master keys come from a setting: its new first key is what everything is encrypted with. */
  newKey: boolean;
  reencrypted: number;
}

/**
 * Makes a new master key (where the service keeps its own) and encrypts everything stored with it. Running processes
 * notice by themselves; the old key still opens what they encrypt until then.
 */
export async function rotateSecrets(app: App): Promise<RotatedSecrets> {
  const newKey = app.config.secretKey === null;
  if (newKey) {
    prependMasterKey(app.config.dataDir);
    app.secrets.reload();
  }
  await recordEncryptionKeys(app, app.clock.now());
  const reencrypted = await reencryptAll(app, ENCRYPTED_PLACES);
  await forgetOlderKeys(app);
  return { newKey, reencrypted };
}
