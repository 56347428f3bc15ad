import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import { below, withQuery, type Address } from '../../api-paths.js';
import { moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { say, Trouble, useAction } from '../../parts/basics.js';
import { Commands, ofProject, quote } from '../../parts/commands.js';
import { Filters } from '../../parts/filters.js';
import { Field, Form } from '../../parts/form.js';
import { PageHead } from '../../parts/page-head.js';
import { List, Pages } from '../../parts/table.js';
import { chosenOf, goTo, linkHere, place } from '../../routes.js';
import { mayChange, projectPath } from '../../session.js';
import { fateOf, MailDrawer } from './mail-drawer.js';
import { MailSettingsDrawer } from './mail-settings.js';
import { Templates } from './templates.js';

const STATUSES = (['queued', 'sent', 'delivered', 'bounced', 'complained', 'failed'] as const).map(
  (each) => [each, each] as const,
);
const BAD = new Set(['bounced', 'complained', 'failed']);

export function Mail() {
  const { query } = place.value;
  const project = projectPath();
  const page = Number(query.get('page') ?? 1) || 1;
  const status = chosenOf('status', STATUSES) ?? '';
  const to = query.get('to') ?? '';
  const path = withQuery(below(project, '/mail/logs'), { status, to, page: page > 1 ? page : null });
  const list = useLoad(path);
  const settings = useLoad(project);
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
          { name: 'Status', show: (mail) => <span class={BAD.has(mail.status) ? 'bad' : ''}>{fateOf(mail)}</span> },
          { name: 'Why', show: ({ reason }) => reason ?? '' },
          { name: 'At', show: ({ sentAt }) => moment(sentAt) },
        ]}
      />
      <Pages of={list.data} names={['mail', 'mails']} />
      <Commands
        cli={`bsvc mail logs ${ofProject()}${status && ` --status ${status}`}${to && ` --to ${quote(to)}`}`}
        path={path}
      />
      <Templates base={below(project, '/mail/templates')} />
      {mayChange.value && <TestMail path={below(project, '/mail/test')} onSent={list.reload} />}
      {open && <MailDrawer key={open.id} project={project} mail={open} onClose={close} />}
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

function TestMail({ path, onSent }: { path: Address<'/api/projects/{projectId}/mail/test'>; onSent: () => void }) {
  const [to, setTo] = useState('');
  const [busy, send, error] = useAction(async () => {
    await call('POST', path, { body: { to } });
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
        path={path}
        body={{ to: to || 'me@example.com' }}
      />
    </>
  );
}
