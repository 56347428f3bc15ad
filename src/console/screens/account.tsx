import { useState } from 'preact/hooks';
import { api } from '../api.js';
import { moment } from '../format.js';
import { useLoad } from '../load.js';
import { say, tellRefusal, Trouble, useAction } from '../parts/basics.js';
import { Field, Form } from '../parts/form.js';
import { Table } from '../parts/table.js';
import { me } from '../session.js';

interface Session {
  createdAt: string;
  expiresAt: string;
  usedAt: string | null;
  console: boolean;
  current: boolean;
}

export function Account() {
  const { data, error, loading, reload } = useLoad<{ items: Session[] }>('/api/admin/me/sessions');
  const [currentPassword, setCurrent] = useState('');
  const [newPassword, setNew] = useState('');
  const [busy, change, refused] = useAction(async () => {
    await api('POST', '/api/admin/me/password', { currentPassword, newPassword });
    setCurrent('');
    setNew('');
    say('The password is changed; your other sessions have ended');
    reload();
  });
  const endOthers = async (): Promise<void> => {
    try {
      const { ended } = await api<{ ended: number }>('DELETE', '/api/admin/me/sessions');
      say(`${ended} sessions have ended`);
      reload();
    } catch (refusal) {
      tellRefusal(refusal);
    }
  };
  return (
    <>
      <h1>Account</h1>
      <p>
        {me.value?.email}, {me.value?.role}
      </p>
      <h2>Sessions</h2>
      <Trouble error={error} onRetry={reload} />
      <Table
        label="Sessions"
        loading={loading}
        rows={data?.items ?? null}
        keyOf={(session) => session.createdAt + session.expiresAt}
        empty="No sessions."
        columns={[
          { name: 'Since', show: ({ createdAt }) => moment(createdAt) },
          { name: 'Until', show: ({ expiresAt }) => moment(expiresAt) },
          { name: 'Last used', show: ({ usedAt }) => moment(usedAt) },
          {
            name: 'By',
            show: (session) => `${session.console ? 'console' : 'token'}${session.current ? ' (this one)' : ''}`,
          },
        ]}
      />
      <p class="row">
        <button onClick={() => void endOthers()}>End all other sessions</button>
      </p>
      <h2>Password</h2>
      <Form class="sign-in" onSubmit={() => void change()}>
        <Field
          label="Current password"
          type="password"
          required
          autocomplete="current-password"
          value={currentPassword}
          onText={setCurrent}
        />
        <Field
          label="New password"
          type="password"
          required
          autocomplete="new-password"
          value={newPassword}
          onText={setNew}
        />
        <Trouble error={refused} />
        <button disabled={busy}>Change the password</button>
      </Form>
    </>
  );
}
