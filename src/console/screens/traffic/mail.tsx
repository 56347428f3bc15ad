import { useState } from 'preact/hooks';
import { api, queryOf } from '../../api.js';
import { moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { say, Trouble, useAction } from '../../parts/basics.js';
import { Commands, ofProject, quote } from '../../parts/commands.js';
import { Filters } from '../../parts/filters.js';
import { Field, Form } from '../../parts/form.js';
import { PageHead } from '../../parts/page-head.js';
import { List, Pages } from '../../parts/table.js';
import { goTo, linkHere, place } from '../../routes.js';
import { mayChange } from '../../session.js';
import { MailDrawer, type MailLog } from './mail-drawer.js';
import { MailSettingsDrawer, type MailSettings } from './mail-settings.js';
import { Templates } from './templates.js';

const STATUSES = ['queued', 'sent', 'delivered', 'bounced', 'complained', 'failed'].map(
  (each) => [each, each] as const,
);
const BAD = new Set(['bounced', 'complained', 'failed']);

export function Mail() {
  const { parts, query } = place.value;
  const base = `/api/projects/${parts[1] ?? ''}/mail`;
  const page = Number(query.get('page') ?? 1) || 1;
  const [status, to] = [query.get('status') ?? '', query.get('to') ?? ''];
  const path = `${base}/logs${queryOf({ status, to, page: page > 1 ? page : null })}`;
  const list = useLoad<{ items: MailLog[]; total: number; page: number; limit: number }>(path);
  const project = `/api/projects/${parts[1] ?? ''}`;
  const settings = useLoad<MailSettings>(project);
  const open = list.data?.items.find(({ id }) => id === query.get('open'));
  const close = (): void => goTo(linkHere({ open: null, edit: null }));
  return (
    <>
      <PageHead title="Mail" count={list.data?.total}>
        {mayChange.value && (
          <a class="button" href={linkHere({ edit: '1' })}>
            Provider and sender…
          </a>
        )}
      </PageHead>
      {settings.data && (
        <p class="muted">
          {settings.data.providerApiKey
            ? `Sent by the project’s own Resend key (${settings.data.providerApiKey})`
            : 'Sent by the server’s provider'}
          {settings.data.providerFromEmail && `, from ${settings.data.providerFromEmail}`}.
        </p>
      )}
      <Filters
        fields={[
          { name: 'to', label: 'To' },
          { name: 'status', label: 'Status', choices: STATUSES },
        ]}
      />
      <List
        label="Mails"
        of={list}
        keyOf={({ id }) => id}
        empty="No mails yet."
        columns={[
          { name: 'To', show: (mail) => [mail.to].flat().join(', ') },
          {
            name: 'Subject',
            show: ({ id, subject }) => (
              <a class="opens" href={linkHere({ open: id })}>
                {subject}
              </a>
            ),
          },
          { name: 'Status', show: (mail) => <span class={BAD.has(mail.status) ? 'bad' : ''}>{mail.status}</span> },
          { name: 'Why', show: ({ reason }) => reason ?? '' },
          { name: 'At', show: ({ sentAt }) => moment(sentAt) },
        ]}
      />
      <Pages of={list.data} names={['mail', 'mails']} />
      <Commands
        cli={`bsvc mail logs ${ofProject()}${status && ` --status ${status}`}${to && ` --to ${quote(to)}`}`}
        path={path}
      />
      <Templates base={`${base}/templates`} />
      {mayChange.value && <TestMail base={base} onSent={list.reload} />}
      {open && <MailDrawer key={open.id} base={base} mail={open} onClose={close} />}
      {settings.data && query.get('edit') && mayChange.value && (
        <MailSettingsDrawer
          path={project}
          stored={settings.data}
          onClose={close}
          onSaved={() => {
            settings.reload();
            close();
          }}
        />
      )}
    </>
  );
}

function TestMail({ base, onSent }: { base: string; onSent: () => void }) {
  const [to, setTo] = useState('');
  const [busy, send, error] = useAction(async () => {
    await api('POST', `${base}/test`, { to });
    say(`A test mail to ${to} is on its way`);
    onSent();
  });
  return (
    <>
      <h2>Test mail</h2>
      <Form class="row" onSubmit={() => void send()}>
        <Field label="To" type="email" required value={to} onText={setTo} />
        <button disabled={busy}>Send</button>
      </Form>
      <Trouble error={error} />
      <Commands
        cli={`bsvc mail test --to ${quote(to || 'me@example.com')} ${ofProject()}`}
        method="POST"
        path={`${base}/test`}
        body={{ to: to || 'me@example.com' }}
      />
    </>
  );
}
