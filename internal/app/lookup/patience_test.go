package lookup

import "time"

func init() { scanTime = time.Hour } // what a list has in tests is not to depend on how busy the machine is
