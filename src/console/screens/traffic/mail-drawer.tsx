import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import { below, type Address } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { Trouble, useAction } from '../../parts/basics.js';
import { moment } from '../../format.js';
import { Commands, quote } from '../../parts/commands.js';
import { Drawer } from '../../parts/drawer.js';
import { mayChange } from '../../session.js';

/** Its status, but for mails that the outbox has taken: it names them by our own id, and sends none. */
export const fateOf = ({ id, providerEmailId, status }: ApiSchemas['MailLog']): string =>
  status === 'sent' && providerEmailId === id ? 'kept' : status;

/** One mail: what became of it, and its text where it is still kept. HTML is shown as text. */
export function MailDrawer({
  project,
  mail,
  onClose,
}: {
  project: Address<'/api/projects/{projectId}'>;
  mail: ApiSchemas['MailLog'];
  onClose: () => void;
}) {
  const path = below(project, '/mail/logs/{id}/text', { id: mail.id });
  const [kept, setKept] = useState<ApiSchemas['MailText'] | null>(null);
  const [busy, read, error] = useAction(async () => setKept(await call('POST', path)));
  const to = [mail.to].flat();
  return (
    <Drawer title={mail.subject} onClose={onClose}>
      <dl class="pairs">
        {kept && <dt>From</dt>}
        {kept && <dd>{kept.from}</dd>}
        <dt>To</dt>
        <dd>{to.join(', ')}</dd>
        <dt>Status</dt>
        <dd>{fateOf(mail)}</dd>
        <dt>At</dt>
        <dd>{moment(mail.sentAt)}</dd>
        {mail.reason && <dt>Why</dt>}
        {mail.reason && <dd>{mail.reason}</dd>}
      </dl>
      <Trouble error={error} />
      {mayChange.value && !kept && (
        <>
          <p class="muted">Mails carry codes that open accounts: reading one is recorded in the audit log.</p>
          <p class="row">
            <button disabled={busy} onClick={() => void read()}>
              Read the mail
            </button>
          </p>
        </>
      )}
      {kept && kept.text !== null && <pre tabIndex={0}>{kept.text}</pre>}
      {kept && kept.html !== null && (
        <>
          <h3>HTML</h3>
          <pre tabIndex={0}>{kept.html}</pre>
        </>
      )}
      {mayChange.value && <Commands cli={`bsvc mail outbox --to ${quote(to[0] ?? '')}`} method="POST" path={path} />}
    </Drawer>
  );
}
