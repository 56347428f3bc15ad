import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { openApp } from '../../../src/app.js';
import { readBearer } from '../../../src/features/access/read-bearer.js';
import { signAccessToken } from '../../../src/features/access/sign-access-token.js';
import { findByokKey, setMailSettings } from '../../../src/features/mail/project-mail.js';
import { rotateSecrets } from '../../../src/features/store-copies/rotate-secrets.js';
import { requireProject } from '../../../src/features/projects/project-store.js';
import { listOutbox } from '../../../src/platform/mail-provider/outbox.js';
import { openSecretBox } from '../../../src/platform/secrets/secret-box.js';
import { drainJobs } from '../../../src/worker.js';
import { buildProject } from '../../helpers/build-project.js';
import { runBinary } from '../../helpers/run-binary.js';
import { useTestApp } from '../../helpers/use.js';

const test = await useTestApp({ settings: { BSVC_MAIL_FROM: 'a@b.co' } });

const readKeys = async (): Promise<string> => (await readFile(join(test.dataDir, 'secret.key'), 'utf8')).trim();

describe('bsvc secrets rotate', () => {
  it('encrypts everything with a new key, so that the old one opens nothing', async () => {
    const owner = await buildProject(test.app);
    const project = await setMailSettings(test.app, owner.project, { providerApiKey: 're_mine' });
    const oldKey = await readKeys();
    const { newKey, reencrypted } = await rotateSecrets(test.app);
    expect(newKey).toBe(true);
    expect(reencrypted).toBeGreaterThanOrEqual(2);
    expect((await rotateSecrets({ ...test.app, config: { ...test.app.config, secretKey: 'given' } })).reencrypted).toBe(
      0,
    );
    const stored = await requireProject(test.app, project.name);
    expect(findByokKey(test.app, stored)).toBe('re_mine');
    expect(() => findByokKey({ secrets: openSecretBox(oldKey) }, stored)).toThrow(/master key/);
  });

  it('refuses while another process puts its key into the file, so that neither is lost', async () => {
    const lock = join(test.dataDir, 'secret.key.lock');
    await writeFile(lock, '');
    const before = await readKeys();
    await expect(rotateSecrets(test.app)).rejects.toMatchObject({
      code: 'ROTATION_UNDER_WAY',
      message: expect.stringContaining(lock) as string,
    });
    expect(await readKeys()).toBe(before);
    await rm(lock);
    await rotateSecrets(test.app);
    expect((await readKeys()).split(',').slice(1).join()).toBe(before);
    expect((await readdir(test.dataDir)).filter((name) => name.startsWith('secret.key'))).toEqual(['secret.key']);
  });

  it('loses no key when several commands run at once', async () => {
    const owner = await buildProject(test.app);
    await setMailSettings(test.app, owner.project, { providerApiKey: 're_mine' });
    const before = (await readKeys()).split(',').length;
    const env = { BSVC_DATA_DIR: test.dataDir, BSVC_DURABILITY: 'relaxed' };
    const runs = await Promise.all(
      Array.from({ length: 4 }, () => runBinary(['secrets', 'rotate', '--json'], { env })),
    );
    for (const { code, stderr } of runs.filter((run) => run.code !== 0))
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('ROTATION_UNDER_WAY') as string });
    const done = runs.filter(({ code }) => code === 0).length;
    expect(done).toBeGreaterThan(0);
    expect((await readKeys()).split(',')).toHaveLength(before + done);
    test.app.secrets.reload();
    expect(findByokKey(test.app, await requireProject(test.app, owner.project.name))).toBe('re_mine');
  });

  it('reaches a server that is running, while mail is being sent', async () => {
    const owner = await buildProject(test.app);
    const token = signAccessToken(test.app, owner.project, 'a'.repeat(24), 60_000);
    // A command in a process of its own: another App on the same data directory.
    const command = await openApp(test.app.config, test.app.log);
    const send = (subject: string) =>
      request(test.server)
        .post('/api/mail/send')
        .set('x-api-key', owner.secret)
        .send({ to: 'x@y.zz', subject, text: 't' });
    const subjects = Array.from({ length: 20 }, (_, index) => `mail ${index}`);
    await Promise.all(
      subjects.map(async (subject, index) => {
        if (index % 5 === 0) await rotateSecrets(command);
        expect((await send(subject)).status).toBe(200);
      }),
    );
    await drainJobs(test.app);
    const kept = await listOutbox(test.app, { to: 'x@y.zz' });
    expect(kept.map((mail) => mail.subject).sort()).toEqual([...subjects].sort());
    expect(await listOutbox(command, { to: 'x@y.zz' })).toHaveLength(20);
    expect(
      await readBearer(test.app, await requireProject(test.app, owner.project.name), `Bearer ${token}`),
    ).toMatchObject({
      state: 'user',
    });
    await command.close();
  });
});
