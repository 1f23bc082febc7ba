// Attempt: to have the process read files about time zones.
// Contained: local time is universal time, and no file is read.
// expect: value [0,0,0,"1970-01-01T00:00:00.000Z",true,0]
const date = new Date(0);
return [
  date.getHours(), date.getTimezoneOffset(), new Date(1970, 0, 1).getTime(), date.toISOString(),
  String(date).includes('1970') && date.toLocaleString().includes('1970'), Date.parse('1970-01-01 00:00'),
];
